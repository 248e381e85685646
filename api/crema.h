/* The engine behind a C interface: what `import caffe` is made of. C only; nothing here throws, exits or aborts.
 *
 * Every function that can fail returns a crema_status; the sentence that goes with it is crema_last_error(), kept per
 * thread until the thread's next failure. Handles are made by functions with a `**made` argument and given back with
 * the _free of their type; a handle keeps what it names alive, whatever else is freed (a blob outlives its net).
 * Text is UTF-8; text that is returned lives as long as its handle. A net or a solver with its nets is used by one
 * thread at a time, others wait: for the end of the call, functions on blobs for the next callback or the end of a
 * solver's iteration. The memory that crema_blob_values gives is not locked. Different nets may compute at once. All
 * values are float.
 * A process that fork()ed may read and save the nets it inherited, and share their weights with nets of its own. It can
 * neither compute with them nor change them: their threads stayed behind. */
#ifndef CREMA_H
#define CREMA_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#define CREMA_API __attribute__((visibility("default")))

typedef enum {
  CREMA_OK = 0,
  CREMA_INVALID, /* the description is wrong, or what was asked for */
  CREMA_DATA,    /* a file holds something else */
  CREMA_IO,      /* the operating system refused */
  CREMA_PEER,
  CREMA_TIMEOUT,
  CREMA_STOPPED,
  CREMA_INTERNAL, /* our mistake */
  CREMA_HOST      /* a callback of the host failed; the host knows why */
} crema_status;

typedef struct crema_blob crema_blob;
typedef struct crema_memory crema_memory;
typedef struct crema_net crema_net;
typedef struct crema_solver crema_solver;
typedef struct crema_layer crema_layer;

/* Callbacks answer 1 to go on; 0 ends the call that they came from with CREMA_HOST. */

/* --- the process */
CREMA_API const char* crema_version(void);
CREMA_API const char* crema_last_error(void);
CREMA_API void crema_set_log_level(int lowest);        /* 0 all lines, 1 warnings, 2 errors */
CREMA_API void crema_log(int level, const char* text); /* a line of the host */
CREMA_API int crema_set_random_seed(uint64_t seed);    /* each net or solver from now on takes its own seed from it */
CREMA_API int crema_set_threads(int threads);          /* of nets and solvers made from now on; 0: all cores */
CREMA_API int crema_layer_types(void);                 /* how many */
CREMA_API const char* crema_layer_type(int i);         /* NULL behind the last */

/* --- blobs */
CREMA_API int crema_blob_shape(const crema_blob* blob, int* axes, int dims[32]);
CREMA_API int crema_blob_reshape(crema_blob* blob, int axes, const int* dims); /* a parameter keeps its count */
/* The present values (diff 0) or gradients (diff 1), row by row. `owner` keeps the memory, though the blob may move on
 * to other memory when it grows or shares another's.
 * Of a net of phase TEST, other blobs than inputs and outputs, and parameters: the first call may take as long as a
 * forward pass, which makes their values, and later passes take more time and memory than before. */
CREMA_API int crema_blob_values(crema_blob* blob, int diff, float** values, crema_memory** owner);
CREMA_API void crema_blob_free(crema_blob* blob);
CREMA_API void crema_memory_free(crema_memory* memory);

/* --- nets; phase 0 TRAIN, 1 TEST */
CREMA_API int crema_net_create(const char* prototxt, int phase, int level, const char* const* stages, int stage_count,
                               crema_net** made);
CREMA_API void crema_net_free(crema_net* net);

typedef enum {
  CREMA_LAYERS,      /* names, in order */
  CREMA_LAYER_TYPES, /* likewise */
  CREMA_BLOBS,       /* names, in the order in which layers make them */
  CREMA_INPUTS,      /* tops of Input layers */
  CREMA_OUTPUTS,     /* blobs that no layer reads, in alphabetical order */
  CREMA_BOTTOMS,     /* of one layer */
  CREMA_TOPS
} crema_list;
CREMA_API int crema_net_count(const crema_net* net, crema_list list, int layer); /* 0 for a layer that is not there */
CREMA_API const char* crema_net_text(const crema_net* net, crema_list list, int layer, int i); /* NULL: not there */
CREMA_API int crema_net_blob(const crema_net* net, const char* name, crema_blob** made);
CREMA_API double crema_net_loss_weight(const crema_net* net, const char* blob); /* 0: it is no loss */
CREMA_API int crema_net_params(const crema_net* net, int layer);
CREMA_API int crema_net_param(const crema_net* net, int layer, int i, crema_blob** made);
CREMA_API int64_t crema_net_instance(const crema_net* net, int layer); /* host's number of a hosted layer; else -1 */

/* Layers `first` to `last`, both included. Every call takes new random numbers; data layers, when they run, the next
 * batch. */
CREMA_API int crema_net_forward(crema_net* net, int first, int last, double* loss);
CREMA_API int crema_net_backward(crema_net* net, int from, int down_to); /* adds to gradients of parameters */
CREMA_API int crema_net_reshape(crema_net* net);                         /* after a reshape of inputs */
CREMA_API int crema_net_clear_param_diffs(crema_net* net);
CREMA_API int crema_net_copy_from(crema_net* net, const char* weights); /* of either format; or "a.caffemodel,b.h5" */
CREMA_API int crema_net_share_with(crema_net* net, const crema_net* other); /* net uses other's weights */
CREMA_API int crema_net_save(const crema_net* net, const char* file, int hdf5);
/* For MemoryData: `records` samples of dims (channels, height, width) and their labels, batch after batch and round
 * again. The arrays are read when batches are; they stay the host's. */
CREMA_API int crema_net_set_input_arrays(crema_net* net, const float* data, const float* labels, int records,
                                         const int dims[3]);
typedef enum { CREMA_BEFORE_FORWARD, CREMA_AFTER_FORWARD, CREMA_BEFORE_BACKWARD, CREMA_AFTER_BACKWARD } crema_moment;
/* Called with `user` and the layer's number. NULL removes it. */
CREMA_API int crema_net_set_hook(crema_net* net, crema_moment moment, int (*hook)(void* user, int layer), void* user);

/* --- solvers; `type` ("SGD", ...) replaces the file's, NULL does not */
CREMA_API int crema_solver_create(const char* prototxt, const char* type, crema_solver** made);
CREMA_API void crema_solver_free(crema_solver* solver);
CREMA_API const char* crema_solver_type(const crema_solver* solver);
CREMA_API int crema_solver_test_nets(const crema_solver* solver);
CREMA_API int crema_solver_net(const crema_solver* solver, int test_net, crema_net** made); /* -1: the train net */
CREMA_API int crema_solver_step(crema_solver* solver, int iterations);
CREMA_API int crema_solver_solve(crema_solver* solver, const char* resume); /* NULL: from the present iteration */
CREMA_API int crema_solver_restore(crema_solver* solver, const char* state);
CREMA_API int crema_solver_snapshot(crema_solver* solver);
CREMA_API int crema_solver_apply_update(crema_solver* solver);
typedef enum { CREMA_ITER, CREMA_LR, CREMA_BASE_LR, CREMA_MAX_ITER, CREMA_DISPLAY } crema_setting;
/* CREMA_ITER can be read while another thread solves; the others wait. */
CREMA_API int crema_solver_get(const crema_solver* solver, crema_setting setting, double* value);
CREMA_API int crema_solver_set(crema_solver* solver, crema_setting setting, double value); /* the last three */
/* Called with `user` in every iteration: behind its tests, and when the gradients are there. */
CREMA_API int crema_solver_set_callbacks(crema_solver* solver, int (*start)(void* user),
                                         int (*gradients_ready)(void* user), void* user);

/* --- layers that the host computes: type Python */
typedef enum { CREMA_RESHAPE, CREMA_FORWARD, CREMA_BACKWARD } crema_pass;
typedef struct {
  size_t size; /* sizeof(crema_layer_host): later versions may have more fields */
  void* user;  /* passed to both callbacks */
  /* While a net is built. *instance: the host's number for it, not negative. `layer` is valid during this call only. */
  int (*make)(void* user, crema_layer* layer, int64_t* instance);
  /* propagate_down: one number per bottom, for backward */
  int (*run)(void* user, int64_t instance, crema_pass pass, const int* propagate_down);
} crema_layer_host;
CREMA_API int crema_set_layer_host(const crema_layer_host* host); /* copied; NULL removes it */
typedef enum { CREMA_LAYER_NAME, CREMA_LAYER_MODULE, CREMA_LAYER_CLASS, CREMA_LAYER_PARAM_STR } crema_layer_string;
CREMA_API const char* crema_layer_text(const crema_layer* layer, crema_layer_string which);
CREMA_API int crema_layer_phase(const crema_layer* layer);
CREMA_API int crema_layer_bottoms(const crema_layer* layer);
CREMA_API int crema_layer_tops(const crema_layer* layer);
CREMA_API int crema_layer_bottom(const crema_layer* layer, int i, crema_blob** made);
CREMA_API int crema_layer_top(const crema_layer* layer, int i, crema_blob** made);
CREMA_API int crema_layer_add_blob(crema_layer* layer, int axes, const int* dims, crema_blob** made); /* a parameter */

/* --- pictures: JPEG and PNG to bytes, height x width x channels, B G R; colour 0: one channel, 1: three */
CREMA_API int crema_decode_image(const void* bytes, size_t size, int colour, int dims[3], const uint8_t** pixels,
                                 crema_memory** owner);

/* --- a graph as a picture. Boxes: lines with \n between them, 0xRRGGBB; edges: an edge comes behind all that lead to
 * its `from`; rankdir TB, BT, LR or RL; format "svg" or "png". The bytes are valid until the thread's next call. The
 * sizes are sizeof(crema_graph), sizeof(crema_box) and sizeof(crema_edge): later versions may have more fields. */
typedef struct {
  const char* text;
  unsigned colour;
} crema_box;
typedef struct {
  int from, to;
  const char* text;
} crema_edge;
typedef struct {
  size_t size, box_size, edge_size;
  const char *title, *rankdir;
  const crema_box* boxes;
  const crema_edge* edges;
  int box_count, edge_count;
} crema_graph;
CREMA_API int crema_draw(const crema_graph* graph, const char* format, const char** bytes, size_t* size);

#ifdef __cplusplus
}
#endif
#endif
