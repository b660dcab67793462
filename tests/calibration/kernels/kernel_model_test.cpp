#include "calibration/kernels/kernel_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/errors.hpp"

namespace ganymede::calibration {
namespace {

using ::testing::AnyOf;

KernelModel model_of(std::string_view gpu) { return KernelModel(*find_gpu_sheet(gpu)); }

Kernel square_convolution(std::int64_t batch, std::int64_t in, std::int64_t size, std::int64_t out, std::int64_t filter,
                          std::int64_t stride) {
  Kernel c;
  c.kind = KernelKind::kConvolution;
  c.batch = batch, c.in_channels = in, c.in_h = c.in_w = size, c.out_channels = out;
  c.kernel_h = c.kernel_w = filter;
  c.pad_h = c.pad_w = (filter - 1) / 2;
  c.stride_h = c.stride_w = stride;
  return c;
}

Kernel product_of(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel product;
  product.kind = batch > 1 ? KernelKind::kBatchedProduct : KernelKind::kProduct;
  product.batch = batch, product.m = m, product.n = n, product.k = k;
  return product;
}

Kernel elementwise(std::int64_t rows, std::int64_t cols) {
  Kernel add;
  add.op = "add", add.rows = rows, add.cols = cols, add.reads_per_element = 2;
  return add;
}

std::vector<Kernel> assorted_kernels() {
  std::vector<Kernel> kernels;
  for (const std::int64_t batch : {1, 16, 1024})
    for (const std::int64_t channels : {1, 3, 64, 2048})
      for (const std::int64_t filter : {1, 3, 4, 7})
        for (const std::int64_t stride : {1, 2})
          for (const KernelKind kind : {KernelKind::kConvolution, KernelKind::kConvolutionDataGradient,
                                        KernelKind::kConvolutionWeightGradient}) {
            kernels.push_back(square_convolution(batch, channels, 16, 64, filter, stride));
            kernels.back().kind = kind;
          }
  for (const std::int64_t size : {1, 17, 512, 8192}) {
    kernels.push_back(product_of(1, size, size, size));
    kernels.push_back(product_of(32, size, 128, size));
    kernels.push_back(elementwise(size, 4096));
    kernels.push_back(elementwise(size, 4096));
    kernels.back().kind = KernelKind::kSoftmax, kernels.back().op = "softmax";
  }
  return kernels;
}

// A card may run above the clock of its data sheet; the fit allows 15 %.
constexpr double kMostAboveSheet = 1.15;

TEST(KernelModel, NeverPassesTheRoofline) {
  for (const GpuSheet& sheet : gpu_sheets()) {
    const KernelModel model(sheet);
    for (Kernel kernel : assorted_kernels())
      for (const KernelPrecision precision : {KernelPrecision::kFp32, KernelPrecision::kTf32, KernelPrecision::kFp16}) {
        kernel.precision = precision;
        const KernelTime time = model.time(kernel);
        const double tensor = precision == KernelPrecision::kTf32 ? sheet.tensor_tf32_flops : sheet.tensor_fp16_flops;
        const double peak =
            precision == KernelPrecision::kFp32 ? sheet.fp32_flops() : std::max(tensor, sheet.fp32_flops());
        const double moved = operand_bytes(kernel) - sheet.l2_bytes;
        ASSERT_GE(time.central_s * (1 + 1e-9), time.flops / (kMostAboveSheet * peak)) << sheet.name;
        ASSERT_GE(time.central_s * (1 + 1e-9), moved / sheet.memory_bandwidth) << sheet.name;
        ASSERT_GE(time.low_s * (1 + 1e-9),
                  std::max(moved / sheet.memory_bandwidth, time.flops / (2 * kMostAboveSheet * peak)))
            << sheet.name;
        ASSERT_LE(time.low_s, time.central_s);
        ASSERT_GT(time.high_s, time.central_s);
      }
  }
}

TEST(KernelModel, Tf32AllowsTensorCoresAndDoesNotDemandThem) {
  for (const GpuSheet& sheet : gpu_sheets()) {
    if (sheet.tensor_tf32_flops == 0) continue;
    const KernelModel model(sheet);
    for (Kernel kernel : assorted_kernels()) {
      if (kernel.kind == KernelKind::kProduct || kernel.kind == KernelKind::kBatchedProduct) continue;
      const double fp32_s = model.time(kernel).central_s;
      kernel.precision = KernelPrecision::kTf32;
      ASSERT_LE(model.time(kernel).central_s, 1.001 * fp32_s) << sheet.name;
    }
  }
}

TEST(KernelModel, PartialSumsAreAsLargeAsTheResult) {
  // One image, so few blocks that the depth is split: partial sums of 512 x 4 x 4 results, beside 8 MB of filters.
  const KernelTime time = model_of("A100").time(square_convolution(1, 256, 8, 512, 4, 2));
  EXPECT_GT(time.bytes, 4.0 * 512 * 256 * 16);
  EXPECT_LT(time.bytes, 2 * 4.0 * 512 * 256 * 16);
}

// The gradient of 8 channels of 8 x 8 from 2,048 of 4 x 4: a few blocks of so large a depth that it is split. Its
// partial sums are as large as the 512 results, not as the 32,768 numbers that it reads.
TEST(KernelModel, PartialSumsOfADataGradientAreAsLargeAsItsResult) {
  Kernel kernel = square_convolution(1, 8, 8, 2048, 4, 2);
  kernel.kind = KernelKind::kConvolutionDataGradient;
  kernel.pad_h = kernel.pad_w = 1;
  const KernelTime time = model_of("A100").time(kernel);
  const double operands = operand_bytes(kernel), result = 4.0 * 8 * 8 * 8;
  EXPECT_GT(time.bytes, operands + 2 * 2 * result);
  EXPECT_LE(time.bytes, operands + 2 * 64 * result);
}

// Channel by channel, tensor cores need the numbers rearranged in kernels of their own: up to Turing those that are
// read, of which a gradient of filters reads both, and none for filters of one number; from Ampere on the result too.
TEST(KernelModel, TensorCoresRearrangeNumbersThatAreChannelByChannel) {
  const double in = 16.0 * 64 * 56 * 56 * 2, out = 16.0 * 128 * 56 * 56 * 2;
  const auto extra = [](const char* gpu, KernelKind kind, std::int64_t filter) {
    Kernel c = square_convolution(16, 64, 56, 128, filter, 1);
    c.kind = kind, c.precision = KernelPrecision::kFp16;
    const KernelTime first = model_of(gpu).time(c);
    c.channels_last = true;
    const KernelTime last = model_of(gpu).time(c);
    // They add to the rest, at no more than the rate of the memory.
    const double bytes = first.bytes - last.bytes;
    EXPECT_GE(first.central_s - last.central_s, 0.25 * bytes / find_gpu_sheet(gpu)->memory_bandwidth);
    return bytes;
  };
  EXPECT_NEAR(extra("V100", KernelKind::kConvolution, 3), 2 * in, 1);
  EXPECT_NEAR(extra("V100", KernelKind::kConvolutionDataGradient, 3), 2 * out, 1);
  EXPECT_NEAR(extra("V100", KernelKind::kConvolutionWeightGradient, 3), 2 * (in + out), 1);
  EXPECT_EQ(extra("V100", KernelKind::kConvolution, 1), 0);
  EXPECT_NEAR(extra("A100-40GB", KernelKind::kConvolution, 3), 2 * (in + out), 1);
  EXPECT_NEAR(extra("A100-40GB", KernelKind::kConvolution, 1), 2 * (in + out), 1);
}

// 16-bit numbers that need a place each are slower than the memory, 32-bit ones are not.
TEST(KernelModel, BroadcastNumbersNeedTheirPlaces) {
  const auto slower = [](KernelPrecision precision, std::int64_t rows) {
    Kernel kernel = elementwise(rows, 65536);
    kernel.precision = precision, kernel.reads_per_element = 1, kernel.op = "relu";
    const double whole_s = model_of("V100").time(kernel).central_s;
    kernel.op = "broadcast";
    return model_of("V100").time(kernel).central_s / whole_s;
  };
  EXPECT_GT(slower(KernelPrecision::kFp16, 4096), 1.3);
  EXPECT_LT(slower(KernelPrecision::kFp16, 4096), 1.8);
  EXPECT_NEAR(slower(KernelPrecision::kFp32, 4096), 1, 1e-9);
}

// 33 words a number: 32 words a clock and multiprocessor, where memory would take a fifth of that.
TEST(KernelModel, FiltersWaitForSharedMemory) {
  Kernel kernel = elementwise(4096, 65536);
  kernel.precision = KernelPrecision::kFp16, kernel.reads_per_element = 1;
  const auto seconds = [&](const char* gpu, double words) {
    kernel.shared_per_element = words;
    return model_of(gpu).time(kernel).central_s;
  };
  const double least_s = 4096.0 * 65536 * 33 / (32.0 * 80 * 1.53e9);
  EXPECT_NEAR(seconds("V100", 33) / least_s, 1, 0.35);
  EXPECT_NEAR(seconds("V100", 330) / seconds("V100", 33), 10, 0.5);
  EXPECT_DOUBLE_EQ(seconds("V100", 1), seconds("V100", 0));
}

// DeepBench, P100: 8 x 256 channels of 56 x 56 from 128 of 28 x 28 took 19.3 ms, the forward pass 88 us.
TEST(KernelModel, StridedGradientsOfHalfStorageAreScattered) {
  Kernel c = square_convolution(8, 256, 56, 128, 1, 2);
  c.precision = KernelPrecision::kFp16;
  const KernelModel model = model_of("P100");
  const double forward_s = model.time(c).central_s;
  c.kind = KernelKind::kConvolutionDataGradient;
  EXPECT_EQ(model.time(c).algorithm, "scatter");
  EXPECT_GT(model.time(c).central_s, 20 * forward_s);
  c.stride_h = c.stride_w = 1;
  EXPECT_NE(model.time(c).algorithm, "scatter");
  c.stride_h = c.stride_w = 2;
  EXPECT_NE(model_of("V100").time(c).algorithm, "scatter");
}

TEST(KernelModel, OneBlockMoreThanAWaveTakesAnotherWave) {
  // A100: batches of products run in blocks of 128 x 128, one after the other on each of 108 multiprocessors.
  const KernelModel model = model_of("A100-40GB");
  const std::int64_t depth = 4096;
  const double one = model.time(product_of(108, 128, 128, depth), Load::kBurst).central_s;
  const double more = model.time(product_of(109, 128, 128, depth), Load::kBurst).central_s;
  const double two = model.time(product_of(216, 128, 128, depth), Load::kBurst).central_s;
  EXPECT_GT(more, 1.5 * one);
  EXPECT_NEAR(more / two, 1, 0.15);
  EXPECT_EQ(model.time(product_of(109, 128, 128, depth)).tiles, 109);
}

TEST(KernelModel, TakesTheAlgorithmThatTheShapeAllows) {
  const auto algorithm = [](std::string_view gpu, Kernel kernel, KernelPrecision precision) {
    kernel.precision = precision;
    return model_of(gpu).time(kernel).algorithm;
  };
  const auto wide = square_convolution(32, 256, 14, 256, 3, 1);
  EXPECT_THAT(algorithm("V100", wide, KernelPrecision::kFp32), AnyOf("winograd-2x2", "winograd-4x4"));
  EXPECT_EQ(algorithm("V100", square_convolution(32, 256, 14, 256, 3, 2), KernelPrecision::kFp32), "implicit-gemm");
  EXPECT_EQ(algorithm("V100", square_convolution(32, 256, 14, 256, 1, 1), KernelPrecision::kFp32), "implicit-gemm");
  EXPECT_EQ(algorithm("V100", wide, KernelPrecision::kFp16), "tensor-gemm");
  EXPECT_EQ(algorithm("P100", wide, KernelPrecision::kTf32), algorithm("P100", wide, KernelPrecision::kFp32));
  // Three channels hardly fill the 16 bytes that tensor cores read at once; only later libraries fill them up.
  const auto image = square_convolution(32, 3, 64, 64, 7, 2);
  EXPECT_EQ(algorithm("V100", image, KernelPrecision::kFp16), "implicit-gemm");
  EXPECT_EQ(algorithm("A100-40GB", image, KernelPrecision::kFp16), "tensor-gemm");
}

// cuDNN has Winograd's algorithm in one kernel since Maxwell.
TEST(KernelModel, KeplerHasNoWinogradInOneKernel) {
  for (const std::int64_t size : {7, 14, 28, 56, 112})
    for (const std::int64_t batch : {1, 8, 64})
      EXPECT_NE(model_of("K80").time(square_convolution(batch, 64, size, 64, 3, 1)).algorithm, "winograd-2x2");
}

// Groups divide the work among filters that see a part of the channels.
TEST(KernelModel, AlignmentIsThatOfAGroup) {
  Kernel grouped = square_convolution(1, 8 * 4, 32, 8 * 4, 3, 1);
  grouped.groups = 8, grouped.precision = KernelPrecision::kFp16;
  EXPECT_EQ(model_of("V100").time(grouped).algorithm, "implicit-gemm");  // four channels a group
  grouped.groups = 4;
  EXPECT_EQ(model_of("V100").time(grouped).algorithm, "tensor-gemm");
  // More channels than eight are filled up to a multiple of it.
  grouped.in_channels = grouped.out_channels = 4 * 81;
  EXPECT_EQ(model_of("V100").time(grouped).algorithm, "tensor-gemm");
}

TEST(KernelModel, WinogradDoesLessArithmetic) {
  // 16 products for 2x2 pixels of 3x3 taps (36 multiplications), 36 for 4x4 pixels (144), on sizes that tiles fill.
  const Kernel wide = square_convolution(32, 256, 16, 256, 3, 1);
  const KernelTime time = model_of("V100").time(wide);
  const double fold = time.algorithm == "winograd-2x2" ? 36.0 / 16 : 144.0 / 36;
  EXPECT_NEAR(direct_flops(wide) / time.flops, fold, 1e-9);
}

TEST(KernelModel, GradientsCostTheirOwnArithmetic) {
  Kernel transposed = square_convolution(64, 64, 64, 128, 4, 2);  // the mirror of DCGAN's layers
  const double forward = model_of("V100").time(transposed).central_s;
  transposed.kind = KernelKind::kConvolutionDataGradient;
  const KernelTime gradient = model_of("V100").time(transposed);
  EXPECT_DOUBLE_EQ(gradient.flops, direct_flops(transposed));  // stride 2 divides the four taps evenly
  EXPECT_GT(gradient.central_s, 0.5 * forward);
  EXPECT_LT(gradient.central_s, 5 * forward);
}

TEST(KernelModel, CountsAllDirections) {
  Kernel line = square_convolution(16, 128, 1, 128, 1, 1);
  line.in_w = 4096, line.kernel_w = 5, line.pad_w = 2;
  Kernel film = square_convolution(16, 64, 32, 64, 3, 1), image = film;
  film.in_d = 16, film.kernel_d = 3, film.pad_d = 1;
  const KernelModel model = model_of("A100-40GB");
  EXPECT_DOUBLE_EQ(model.time(line).flops, direct_flops(line));
  EXPECT_DOUBLE_EQ(model.time(film).flops, 16 * 3 * direct_flops(image));
  EXPECT_GT(model.time(film).central_s, 16 * model.time(image).central_s);
  for (const KernelKind gradient : {KernelKind::kConvolutionDataGradient, KernelKind::kConvolutionWeightGradient}) {
    film.kind = gradient;
    EXPECT_DOUBLE_EQ(model.time(film).flops, direct_flops(film));
  }
}

TEST(KernelModel, GrowsWithBatchAndChannels) {
  for (const char* gpu : {"P100", "V100", "T4", "A100-40GB", "L4", "H100"}) {
    const KernelModel model = model_of(gpu);
    for (const KernelKind kind :
         {KernelKind::kConvolution, KernelKind::kConvolutionDataGradient, KernelKind::kConvolutionWeightGradient}) {
      Kernel small = square_convolution(1, 64, 32, 128, 4, 2), large = square_convolution(1024, 64, 32, 128, 4, 2);
      small.kind = large.kind = kind;
      EXPECT_GT(model.time(large).central_s, 20 * model.time(small).central_s) << gpu;
      Kernel narrow = square_convolution(16, 1, 32, 128, 4, 2), wide = square_convolution(16, 2048, 32, 128, 4, 2);
      narrow.kind = wide.kind = kind;
      EXPECT_GT(model.time(wide).central_s, 20 * model.time(narrow).central_s) << gpu;
    }
  }
}

// Batches and channels over the whole range, RGB ends and channels that are no multiple of eight included, in each
// precision and direction, of one, two and three dimensions: always a time, and for twice the batch not much less of
// it. A larger batch may have a faster algorithm, or tiles that fill the GPU better.
std::vector<Kernel> kernels_of_batch(std::int64_t batch) {
  std::vector<Kernel> kernels;
  for (const std::int64_t in : {1, 3, 20, 64, 512, 2048})
    for (const std::int64_t out : {1, 3, 64, 100, 2048})
      for (const auto& [filter, stride] : {std::pair{1, 1}, std::pair{3, 1}, std::pair{4, 2}, std::pair{7, 1}})
        for (const KernelKind kind :
             {KernelKind::kConvolution, KernelKind::kConvolutionDataGradient, KernelKind::kConvolutionWeightGradient}) {
          Kernel c = square_convolution(batch, in, 16, out, filter, stride);
          c.kind = kind;
          kernels.push_back(c);
          c.in_h = c.kernel_h = c.stride_h = 1, c.pad_h = 0;
          kernels.push_back(c);
          c = square_convolution(batch, in, 8, out, filter, stride);
          c.kind = kind, c.in_d = 8, c.kernel_d = filter, c.stride_d = stride, c.pad_d = (filter - 1) / 2;
          kernels.push_back(c);
        }
  for (const std::int64_t size : {1, 17, 512, 2048}) {
    kernels.push_back(product_of(1, batch, size, size));
    kernels.push_back(product_of(1, size, size, batch));
    kernels.push_back(product_of(batch, size, 64, size));
    for (const KernelKind kind : {KernelKind::kElementwise, KernelKind::kSoftmax, KernelKind::kNormalization}) {
      kernels.push_back(elementwise(batch * size, 256));
      kernels.back().kind = kind;
    }
  }
  return kernels;
}

TEST(KernelModel, HasATimeForEveryShapeThatGrowsWithTheBatch) {
  for (const char* gpu : {"K80", "P100", "V100", "T4", "A100-40GB", "H100", "B200", "L4"}) {
    const KernelModel model = model_of(gpu);
    for (const KernelPrecision precision :
         {KernelPrecision::kFp32, KernelPrecision::kTf32, KernelPrecision::kFp16, KernelPrecision::kBf16}) {
      std::vector<double> before;
      for (std::int64_t batch = 1; batch <= 1024; batch *= 4) {
        std::vector<Kernel> kernels = kernels_of_batch(batch);
        before.resize(kernels.size(), 0);
        for (std::size_t i = 0; i < kernels.size(); ++i) {
          kernels[i].precision = precision;
          const KernelTime time = model.time(kernels[i]);
          ASSERT_TRUE(std::isfinite(time.low_s) && time.low_s > 0 && std::isfinite(time.high_s));
          ASSERT_LE(time.low_s, time.central_s);
          ASSERT_LE(time.central_s, time.high_s);
          const Kernel& k = kernels[i];
          EXPECT_GT(time.central_s, 0.6 * before[i])
              << gpu << " " << to_string(precision) << " " << to_string(k.kind) << " batch " << batch << " "
              << k.in_channels << "x" << k.in_d << "x" << k.in_h << " to " << k.out_channels << ", " << k.kernel_h
              << "/" << k.stride_h << " or " << k.m << "x" << k.k << "x" << k.n << " or " << k.rows;
          before[i] = time.central_s;
        }
      }
    }
  }
}

TEST(KernelModel, PowerLimitsLongWorkOnSmallBoards) {
  const Kernel product = product_of(1, 8192, 8192, 8192);
  const auto slowed = [&](std::string_view gpu) {
    const KernelModel model = model_of(gpu);
    return model.time(product, Load::kSustained).central_s /
           model.time(product_of(1, 1024, 1024, 1024), Load::kBurst).central_s * 1024 * 1024 * 1024 / 8192.0 / 8192 /
           8192;
  };
  // Published rates of the T4 (70 W): half of its peak for long products, 85 % for short ones.
  EXPECT_GT(slowed("T4"), 1.1);
  EXPECT_LT(slowed("V100"), 1.1);
  EXPECT_LT(model_of("T4").time(product).flops / model_of("T4").time(product).central_s, 0.6 * 8.1e12);
}

TEST(KernelModel, TakesAGpuThatItHasNotSeenFromItsDataSheet) {
  EXPECT_TRUE(model_of("A100-80GB").measured());  // another board of a measured chip
  EXPECT_FALSE(model_of("L4").measured());
  GpuSheet mine = *find_gpu_sheet("L4");
  mine.name = "mine";
  const Kernel kernel = square_convolution(64, 128, 16, 256, 4, 2);
  EXPECT_DOUBLE_EQ(KernelModel(mine).time(kernel).central_s, model_of("L4").time(kernel).central_s);
  const auto width = [&](std::string_view gpu) {
    const KernelTime time = model_of(gpu).time(product_of(1, 4096, 4096, 4096));
    return time.high_s / time.low_s;
  };
  EXPECT_GT(width("L4"), width("V100"));
}

TEST(KernelModel, RefusesWhatIsNoKernelAndNoGpu) {
  EXPECT_THROW(model_of("V100").time(square_convolution(0, 3, 8, 8, 3, 1)), ConfigError);
  EXPECT_THROW(KernelModel(GpuSheet{}), ConfigError);
}

// The kernels of a chip tell more than the others' do, for its boards and for no other chip.
TEST(KernelModel, AChipHasWhatItsOwnKernelsTell) {
  auto parameters = std::make_shared<KernelParameters>(*built_in_kernel_parameters());
  const std::string v100 = chip_key(*find_gpu_sheet("V100"));
  ASSERT_TRUE(parameters->chips.contains(v100));
  ChipFit& chip = parameters->chips[v100];
  std::vector<double> slower(Residual::size(), 0);
  slower.back() = 0.1;
  chip.residuals[static_cast<std::size_t>(Group::kElementwise)].add(Residual(slower));
  for (Spread& spread : chip.known[static_cast<std::size_t>(Group::kElementwise)]) spread = {-0.3, 0.3};
  const Kernel kernel = elementwise(8192, 8192);
  for (const char* gpu : {"V100", "V100-PCIE", "A100-40GB", "L4"}) {
    const KernelTime before = model_of(gpu).time(kernel);
    const KernelTime after = KernelModel(*find_gpu_sheet(gpu), parameters).time(kernel);
    const bool same_chip = std::string_view(gpu).starts_with("V100");
    EXPECT_NEAR(after.central_s / before.central_s, same_chip ? std::exp(0.1) : 1, 0.01) << gpu;
    EXPECT_NEAR(after.high_s / after.central_s, same_chip ? std::exp(0.3) : before.high_s / before.central_s, 0.01);
  }
}

}  // namespace
}  // namespace ganymede::calibration
