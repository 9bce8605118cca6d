// The rows that go through a stack of layers together, with everything about them that does not
// depend on the layer.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "model/batch.h"
#include "model/config.h"
#include "model/work_buffer.h"

namespace fathom::model {

// Consecutive positions of one sequence: one or more segments of a batch.
struct Run {
  std::byte* state;
  const std::byte* const* blocks;
  int64_t start;      // position of the first row
  int64_t first_row;  // its row in the set
  int64_t num_rows;
  int64_t pages_from;
  int64_t window_floor;                             // lowest window position that may be read
  const std::byte* const* device_blocks = nullptr;  // `blocks` where kernels read them
  int64_t end() const { return start + num_rows; }
};

struct RopeTable {
  WorkBuffer<float> cos, sin;  // [num_rows, rope_dim / 2]
};

// Where kernels read the vectors of a RowSet during a pass (Stream::upload).
struct RowsOnDevice {
  const int32_t* run = nullptr;
  const int64_t* position = nullptr;
  const int64_t* first_window = nullptr;
  const int64_t* last_window = nullptr;
  const uint8_t* is_image = nullptr;
  std::map<int32_t, const int64_t*> visible;
};

struct RowSet {
  int64_t num_rows = 0;
  std::vector<Run> runs;
  std::vector<int32_t> run;           // [num_rows]
  std::vector<int64_t> position;      // [num_rows]
  std::vector<int64_t> first_window;  // [num_rows]
  // [num_rows] its own position, but in a draft block, whose rows see each other: the block's last.
  std::vector<int64_t> last_window;
  std::vector<uint8_t> is_image;  // [num_rows] of the encoder's rows
  bool any_image = false;
  int64_t max_window = 0;  // no row has more window rows
  std::map<int32_t, std::vector<int64_t>>
      visible;        // ratio -> [num_rows] compressed rows a query sees
  RopeTable rope[2];  // 0: ratio-0 layers, 1: compressed layers
  RowsOnDevice device;

  void clear();
  // Adds the rows [start, start + num_rows) of a run; first_row is set here.
  void add(Run run, int64_t window);
  // Adds a draft block, which reads the window before it from its floor on.
  void add_block(Run run, int64_t window);
  // Adds rows to the last run, whose end they continue.
  void extend(const Run& more, int64_t window);
  // visible[ratio] for every ratio of the config.
  void count_visible(const ModelConfig& config);

 private:
  void add_rows(const Run& rows, int64_t window);
};

// The groups of one ratio that a set of rows completes.
struct GroupSet {
  std::vector<int32_t> run;       // [num_groups] index into RowSet::runs
  std::vector<int64_t> group;     // [num_groups] row of the compressed cache
  std::vector<int64_t> position;  // [num_groups] first token of the group
  RopeTable rope;

  int64_t size() const { return static_cast<int64_t>(group.size()); }
};

// Groups whose last token is in the set and at or above its run's pages_from.  The rope table is
// not filled.
void find_groups(const RowSet& rows, int32_t ratio, GroupSet& out);

}  // namespace fathom::model
