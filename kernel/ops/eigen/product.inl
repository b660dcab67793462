// Matrix product with a register tile of kTileRows x (kTileVectors packets). Part of kernels.cpp.
//
// Operands are not packed, as matrix libraries do: with a batch of 64 each weight is used in 64 multiply-adds only, so
// packing would take much of a training step. The weights (A) are read in place, one broadcast for each multiply-add,
// and the batch (B) is contiguous anyway.

using Eigen::internal::pload;
using Eigen::internal::ploadu;
using Eigen::internal::pmadd;
using Eigen::internal::pset1;
using Eigen::internal::pstoreu;

using Packet = Eigen::internal::packet_traits<float>::type;
constexpr int kWidth = Eigen::internal::unpacket_traits<Packet>::size;
// The accumulators of a tile take 6 x 4 of the 32 registers of AVX-512, and 6 x 2 of the 16 of AVX2 and SSE.
constexpr int kTileRows = 6;
constexpr int kTileVectors = kWidth == 16 ? 4 : 2;
// A panel of B, depth x one tile's columns, stays in a 32 KiB first-level cache (here it has at most 16 KiB).
constexpr int kDepth = kWidth == 16 ? 128 : 256;
static_assert(kDepth * kWidth + kTileRows * kWidth <= kProductScratch);

/// Computes one register tile: C [Rows x Vectors packets] = A [Rows x depth] B [depth x Vectors packets] (+ C).
template <int Rows, int Vectors>
inline __attribute__((always_inline)) void tile(const float* a, std::ptrdiff_t a_row, std::ptrdiff_t a_column,
                                                const float* b, std::ptrdiff_t b_row, float* c, std::ptrdiff_t c_row,
                                                int depth, bool accumulate) {
  Packet sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sum[i][v] = accumulate ? ploadu<Packet>(c + i * c_row + v * kWidth) : pset1<Packet>(0.0F);
  for (int k = 0; k < depth; ++k) {
    Packet row[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) row[v] = ploadu<Packet>(b + v * kWidth);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Packet factor = pset1<Packet>(a[i * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[i][v] = pmadd(factor, row[v], sum[i][v]);
    }
    a += a_column;
    b += b_row;
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) pstoreu(c + i * c_row + v * kWidth, sum[i][v]);
}

/// The same for any number of rows, tile by tile.
template <int Vectors>
void tiles_down(const float* a, std::ptrdiff_t a_row, std::ptrdiff_t a_column, const float* b, std::ptrdiff_t b_row,
                float* c, std::ptrdiff_t c_row, int rows, int depth, bool accumulate) {
  int i = 0;
  for (; i + kTileRows <= rows; i += kTileRows)
    tile<kTileRows, Vectors>(a + i * a_row, a_row, a_column, b, b_row, c + i * c_row, c_row, depth, accumulate);
  a += i * a_row;
  c += i * c_row;
  switch (rows - i) {
    case 1:
      return tile<1, Vectors>(a, a_row, a_column, b, b_row, c, c_row, depth, accumulate);
    case 2:
      return tile<2, Vectors>(a, a_row, a_column, b, b_row, c, c_row, depth, accumulate);
    case 3:
      return tile<3, Vectors>(a, a_row, a_column, b, b_row, c, c_row, depth, accumulate);
    case 4:
      return tile<4, Vectors>(a, a_row, a_column, b, b_row, c, c_row, depth, accumulate);
    case 5:
      return tile<5, Vectors>(a, a_row, a_column, b, b_row, c, c_row, depth, accumulate);
    default:
      return;
  }
}

/// The last columns, fewer than a packet: B padded with zeros in scratch, C through a small copy.
void tail_columns(const Product& p, const float* a, const float* b, float* c, int columns, int rows, int depth,
                  bool accumulate, float* scratch) {
  float* padded = scratch;
  float* result = scratch + kDepth * kWidth;
  for (int k = 0; k < depth; ++k)
    for (int j = 0; j < kWidth; ++j) padded[k * kWidth + j] = j < columns ? b[k * p.b_row + j] : 0.0F;
  for (int i = 0; i < rows; i += kTileRows) {
    const int height = std::min(kTileRows, rows - i);
    for (int r = 0; r < height; ++r)
      for (int j = 0; j < kWidth; ++j)
        result[r * kWidth + j] = accumulate && j < columns ? c[(i + r) * p.c_row + j] : 0.0F;
    tiles_down<1>(a + i * p.a_row, p.a_row, p.a_column, padded, kWidth, result, kWidth, height, depth, true);
    for (int r = 0; r < height; ++r)
      for (int j = 0; j < columns; ++j) c[(i + r) * p.c_row + j] = result[r * kWidth + j];
  }
}

void product(const Product& p, int row_begin, int row_end, float* scratch) {
  const int rows = row_end - row_begin;
  for (int k = 0; k < p.k; k += kDepth) {
    const int depth = std::min(kDepth, p.k - k);
    const bool accumulate = p.accumulate || k > 0;
    const float* a = p.a + row_begin * p.a_row + k * p.a_column;
    float* c = p.c + row_begin * p.c_row;
    int j = 0;
    const auto columns = [&]<int Vectors>() {
      for (; j + Vectors * kWidth <= p.n; j += Vectors * kWidth)
        tiles_down<Vectors>(a, p.a_row, p.a_column, p.b + k * p.b_row + j, p.b_row, c + j, p.c_row, rows, depth,
                            accumulate);
    };
    columns.template operator()<kTileVectors>();
    if constexpr (kTileVectors > 2) columns.template operator()<2>();
    columns.template operator()<1>();
    if (j < p.n) tail_columns(p, a, p.b + k * p.b_row + j, c + j, p.n - j, rows, depth, accumulate, scratch);
  }
}
