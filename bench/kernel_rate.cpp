// How many kernels the model of kernel times predicts in a second of processor time, by kind.
//
//   kernel_rate [kernels of a kind, 200000]

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <vector>

#include "calibration/kernels/kernel_model.hpp"

namespace ganymede::calibration {
namespace {

/// Shapes that differ from one to the next, as no step repeats them.
std::vector<Kernel> kernels_of(KernelKind kind, int count) {
  std::vector<Kernel> kernels(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Kernel& kernel = kernels[static_cast<std::size_t>(i)];
    kernel.kind = kind;
    kernel.batch = 1 + i % 64;
    kernel.in_channels = 8 + i % 500, kernel.out_channels = 16 + i % 300;
    kernel.in_h = kernel.in_w = 7 + i % 200;
    kernel.kernel_h = kernel.kernel_w = 3, kernel.pad_h = kernel.pad_w = 1;
    kernel.m = 1 + i % 4000, kernel.n = 8 + i % 1000, kernel.k = 16 + i % 3000;
    kernel.rows = 1 + i % 5000, kernel.cols = 64 + i % 9000, kernel.op = "add";
  }
  return kernels;
}

void run(int count) {
  for (const char* gpu : {"V100", "A100-40GB", "H100"}) {
    const KernelModel model(*find_gpu_sheet(gpu));
    for (std::size_t kind = 0; kind < kernel_kind_names().size(); ++kind) {
      const std::vector<Kernel> kernels = kernels_of(static_cast<KernelKind>(kind), count);
      double sum = 0;  // printed, so that nothing is left out
      const std::clock_t start = std::clock();
      for (const Kernel& kernel : kernels) sum += model.time(kernel).central_s;
      const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      fmt::print("{:10} {:18} {:6.2f} million a second (their times: {:.4g} s)\n", gpu, kernel_kind_names()[kind],
                 1e-6 * count / took, sum);
    }
  }
}

}  // namespace
}  // namespace ganymede::calibration

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 200'000;
  if (argc > 2 || count < 1) {
    fmt::print(stderr, "usage: kernel_rate [kernels of a kind]\n");
    return 2;
  }
  ganymede::calibration::run(count);
}
