// Reference loops: plain, with sums in double, never optimised. Used for double nets, for shapes that the vector code
// declines, and in every test. Signatures are those of kernels.h, channels.h and norm.h without the context; reference.cc puts
// them into tables.
#pragma once
#include "kernels/ref/channels.h"
#include "kernels/ref/conv.h"
#include "kernels/ref/full_speed.h"
#include "kernels/ref/inner_product.h"
#include "kernels/ref/lrn.h"
#include "kernels/ref/norm.h"
#include "kernels/ref/pool.h"
#include "kernels/ref/rows.h"
#include "kernels/ref/softmax.h"
#include "kernels/ref/updates.h"
