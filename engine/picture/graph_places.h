// The data of a layout in progress: a place for every box, and for every line a place in each rank between its ends.
#pragma once
#include <cstddef>
#include <vector>

#include "picture/graph_layout.h"

namespace crema::picture {

struct Place {
  bool box = false;
  double left = 0, right = 0;  // space on both sides of x, including the distance to the next place
  double height = 0;
  double x = 0;
  size_t rank = 0, position = 0;     // in its rank
  std::vector<size_t> above, below;  // joined by edges
};
struct Places {
  std::vector<Place> all;                   // the boxes first
  std::vector<std::vector<size_t>> ranks;   // from left to right
  std::vector<std::vector<size_t>> routes;  // by edge: its places from end to end
  std::vector<size_t> words;                // by edge: the place of its words
};

Places rankedPlaces(const GraphLayout& graph);

// Orders places in ranks so that few edges cross: sweeps by barycentre, then swaps of adjacent places.
void orderRanks(Places& places);

// x of every place (Brandes, Köpf 2001): long edges straight, boxes centred over their neighbours.
void placeAcross(Places& places);

// The ranks behind which a new column begins, so that columns are equally long and few edges lead to the next one.
// `heights`: of the ranks, with what is between them.
std::vector<size_t> columnEnds(const Places& places, const std::vector<double>& heights, double breadth);

}  // namespace crema::picture
