// Convolutions as matrix products whose operand B is gathered panel by panel, so that the matrix of all columns is
// never stored. Part of kernels.cpp.
//
// The images of a position are contiguous ([channels x frames x height x width x batch]), so gathering copies runs of
// `batch` floats. All rows of the product read the same panel; gathering takes a few percent of the time.

constexpr int kTileColumns = kTileVectors * kWidth;
static_assert(kDepth * kTileColumns <= kPanelScratch);

/// The columns of a tile, divided into runs. A run is a range of images at one position.
struct Runs {
  int count = 0;
  int begin[kTileColumns], length[kTileColumns];  // the run's first column in the tile, and its number of columns
  // The run's position:
  int frame[kTileColumns], row[kTileColumns], column[kTileColumns];
  int image[kTileColumns];                        // the run's first image
};

Runs runs_of(const Gather& g, int first, int columns) {
  Runs runs;
  int position = first / g.batch, image = first % g.batch;
  for (int done = 0; done < columns; ++position, image = 0) {
    const int i = runs.count++;
    runs.begin[i] = done;
    runs.length[i] = std::min(g.batch - image, columns - done);
    runs.frame[i] = position / (g.grid_height * g.grid_width);
    runs.row[i] = position / g.grid_width % g.grid_height;
    runs.column[i] = position % g.grid_width;
    runs.image[i] = image;
    done += runs.length[i];
  }
  return runs;
}

inline void copy_run(float* to, const float* from, int length) {
  int i = 0;
  for (; i + kWidth <= length; i += kWidth) pstoreu(to + i, ploadu<Packet>(from + i));
  for (; i < length; ++i) to[i] = from[i];
}

inline void clear_run(float* to, int length) {
  for (int i = 0; i < length; ++i) to[i] = 0.0F;
}

/// Index within a channel of x of what a run reads for a tap; -1: padding.
inline std::ptrdiff_t source_of(const Gather& g, const Runs& runs, int run, const Tap& tap) {
  const int frame = runs.frame[run] + tap.frame;
  const int row = runs.row[run] * g.step + tap.row, column = runs.column[run] * g.step + tap.column;
  if (frame < 0 || frame >= g.frames || row < 0 || row >= g.height || column < 0 || column >= g.width) return -1;
  return ((std::ptrdiff_t{frame} * g.height + row) * g.width + column) * g.batch + runs.image[run];
}

/// Gathers one row of a panel: what the tile reads of one channel for one tap.
inline void gather_row(float* to, const float* channel, const std::ptrdiff_t* sources, const Runs& runs) {
  for (int i = 0; i < runs.count; ++i) {
    if (sources[i] < 0)
      clear_run(to + runs.begin[i], runs.length[i]);
    else
      copy_run(to + runs.begin[i], channel + sources[i], runs.length[i]);
  }
}

void rows_by_panel(const float* a, std::ptrdiff_t a_row, const float* panel, int stride, float* result, int rows,
                   int depth, bool accumulate) {
  switch (stride / kWidth) {
    case 1:
      return tiles_down<1>(a, a_row, 1, panel, stride, result, stride, rows, depth, accumulate);
    case 2:
      return tiles_down<2>(a, a_row, 1, panel, stride, result, stride, rows, depth, accumulate);
    default:
      return tiles_down<kTileVectors>(a, a_row, 1, panel, stride, result, stride, rows, depth, accumulate);
  }
}

/// Floats of the smallest of 1, 2 and kTileVectors packets that holds the columns.
inline int stride_of(int columns) {
  return columns <= kWidth ? kWidth : columns <= 2 * kWidth ? 2 * kWidth : kTileColumns;
}

void gather_product(const Gather& g, const GatherProduct& p, int tile_begin, int tile_end, float* scratch) {
  float *panel = scratch, *result = scratch + kPanelScratch;
  const int all = g.grid_frames * g.grid_height * g.grid_width * g.batch;
  const std::ptrdiff_t channel = std::ptrdiff_t{g.frames} * g.height * g.width * g.batch;
  std::ptrdiff_t sources[kMaxTaps * kTileColumns];
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const int first = tile * kTileColumns, columns = std::min(kTileColumns, all - first), stride = stride_of(columns);
    const Runs runs = runs_of(g, first, columns);
    bool inside[kMaxTaps];
    for (int t = 0; t < g.taps; ++t) {
      inside[t] = false;
      for (int i = 0; i < runs.count; ++i)
        inside[t] = (sources[t * kTileColumns + i] = source_of(g, runs, i, g.tap[t])) >= 0 || inside[t];
    }
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t{kDepth} * stride && columns < stride; ++i) panel[i] = 0.0F;

    bool accumulate = false;
    const auto add = [&](const float* a, int depth) {
      rows_by_panel(a, p.a_row, panel, stride, result, p.rows, depth, accumulate);
      accumulate = true;
    };
    if (p.channels_outside) {
      // Columns of A are (channel, tap), the order of a convolution's weights.
      const int depth_all = g.channels * g.taps;
      for (int k = 0; k < depth_all; k += kDepth) {
        const int depth = std::min(kDepth, depth_all - k);
        for (int r = 0; r < depth; ++r) {
          const int c = (k + r) / g.taps, t = (k + r) % g.taps;
          gather_row(panel + std::ptrdiff_t{r} * stride, g.x + c * channel, sources + t * kTileColumns, runs);
        }
        add(p.a + k, depth);
      }
    } else {
      for (int t = 0; t < g.taps; ++t) {
        if (!inside[t]) continue;
        for (int k = 0; k < g.channels; k += kDepth) {
          const int depth = std::min(kDepth, g.channels - k);
          for (int r = 0; r < depth; ++r)
            gather_row(panel + std::ptrdiff_t{r} * stride, g.x + (k + r) * channel, sources + t * kTileColumns, runs);
          add(p.a + g.tap[t].a + k, depth);
        }
      }
    }
    for (int row = 0; row < p.rows; ++row) {
      float* y = p.y + row * std::ptrdiff_t{g.grid_frames} * p.y_height * p.y_width * g.batch;
      for (int i = 0; i < runs.count; ++i) {
        const int y_row = runs.row[i] * p.y_step + p.y_row, y_column = runs.column[i] * p.y_step + p.y_column;
        const std::ptrdiff_t place = (std::ptrdiff_t{runs.frame[i]} * p.y_height + y_row) * p.y_width + y_column;
        float* to = y + place * g.batch + runs.image[i];
        if (accumulate)
          copy_run(to, result + std::ptrdiff_t{row} * stride + runs.begin[i], runs.length[i]);
        else
          clear_run(to, runs.length[i]);  // no tap reaches this position
      }
    }
  }
}

void gather_weights(const Gather& g, const GatherWeights& p, int tile_begin, int tile_end, int row_begin, int row_end,
                    float* scratch) {
  float *panel = scratch, *gathered = scratch + kPanelScratch, *result = scratch + 2 * kPanelScratch;
  const std::ptrdiff_t positions = std::ptrdiff_t{g.grid_frames} * g.grid_height * g.grid_width * g.batch;
  const std::ptrdiff_t channel = std::ptrdiff_t{g.frames} * g.height * g.width * g.batch;
  const int rows = row_end - row_begin, all = g.channels * g.taps;
  static_assert(kDepth % kTileColumns == 0);
  std::ptrdiff_t sources[kMaxTaps * kTileColumns];
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const int first = tile * kTileColumns, columns = std::min(kTileColumns, all - first), stride = stride_of(columns);
    bool accumulate = false;
    for (std::ptrdiff_t j = 0; j < positions; j += kDepth) {
      const int depth = static_cast<int>(std::min<std::ptrdiff_t>(kDepth, positions - j));
      // Gathers [weights x positions], the order in memory; transposes it below.
      for (int part = 0; part < depth; part += kTileColumns) {
        const int length = std::min(kTileColumns, depth - part);
        const Runs runs = runs_of(g, static_cast<int>(j) + part, length);
        for (int t = 0; t < g.taps; ++t)
          for (int i = 0; i < runs.count; ++i)
            sources[t * kTileColumns + i] = source_of(g, runs, i, g.tap[t]);
        for (int r = 0; r < columns; ++r) {
          const int c = (first + r) / g.taps, t = (first + r) % g.taps;
          gather_row(gathered + std::ptrdiff_t{r} * depth + part, g.x + c * channel, sources + t * kTileColumns, runs);
        }
      }
      for (std::ptrdiff_t i = std::ptrdiff_t{columns} * depth; i < std::ptrdiff_t{stride} * depth; ++i) gathered[i] = 0;
      transpose(gathered, panel, stride, depth, 0, stride);
      rows_by_panel(p.dy + row_begin * positions + j, positions, panel, stride, result, rows, depth, accumulate);
      accumulate = true;
    }
    for (int row = 0; row < rows; ++row) {
      float* to = p.d_weight + std::ptrdiff_t{row_begin + row} * all + first;
      const float* sum = result + std::ptrdiff_t{row} * stride;
      for (int i = 0; i < columns; ++i) to[i] = (p.accumulate ? to[i] : 0.0F) + sum[i];
    }
  }
}
