#include "traces/layer_memory.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

namespace ganymede::traces {
namespace {

using PassKind = LayerPass::Kind;

/// cuBLAS's workspace, which PyTorch takes from its allocator: two buffers of 4 MiB and eight of 16 KiB
/// (CUBLAS_WORKSPACE_CONFIG's default ":4096:2:16:8", as torch.cuda.memory_snapshot() shows: 8,519,680 bytes).
constexpr double kBlasWorkspace = 8'519'680;
/// The filters of each image, while its styles learn: weight times style, its square, their gradients. Differentiated
/// once they pass in four buffers of that size; a gradient of a gradient takes five (the products with the gradient of
/// the styles' gradient, and their sums).
constexpr double kFilterGradients = 4, kFilterGradientsAgain = 5;
/// Numbers of Winograd's transformed tiles for each number of an image (Lavin and Gray, "Fast Algorithms for
/// Convolutional Neural Networks", CVPR 2016: 6 x 6 numbers for 4 x 4) and for each 3 x 3 filter. cuDNN picks it for
/// most wide 3 x 3 convolutions in fp32 (WINOGRAD_NONFUSED), and holds tiles of input, output and filters.
constexpr double kTile = 36.0 / 16, kTileFilter = 36.0 / 9;
/// TensorFlow tries every algorithm of cuDNN on the first convolution of a shape, with a workspace of up to 4 GiB from
/// its own allocator (GetDnnWorkspaceLimit in tensorflow/core/kernels/conv_ops.cc). For 3 x 3 filters FFT_TILING is
/// assumed to take the most: for each filter, and each tile of each channel of input and output, a spectrum of 32 x 17
/// complex numbers (cuDNN's kernel fft2d_r2c_32x32), of whose 32 x 32 pixels the filters leave 30 x 30. The FFT of
/// whole images is not counted: with StyleGAN2's channels it takes as much up to 16 pixels, and more than 4 GiB beyond
/// them. A matrix of all the windows of a pass (explicit GEMM) would be larger for few channels; nothing public says
/// its size.
constexpr double kMostTried = 4.0 * (1 << 30), kSpectrum = 2 * 32 * 17 * kBytesPerNumber, kSpectrumSide = 30;

/// Bytes of a layer for each image, and for all images together.
struct LayerMemory {
  double kept = 0;     ///< by autograd, for its backward pass
  double again = 0;    ///< beside that, to differentiate its gradients
  double passing = 0;  ///< gradients of its input and output while it is differentiated
  double passing_again = 0;
  double copies = 0;                  ///< of the weights, kept for all images
  double workspace = 0, tiles = 0;    ///< for each image, and for all images
  double tried = 0, tried_tiles = 0;  ///< the same of the algorithm that takes the most

  double workspace_of(double images, bool tries) const {
    const double most = tried * images + tried_tiles;
    return std::max(workspace * images + tiles, tries && most <= kMostTried ? most : 0);
  }
};

bool is_half(const std::string& precision) { return precision == "fp16" || precision == "bf16"; }

/// Workspace of the layer's convolution: tensor cores work on channels-last copies of input and output, other
/// convolutions of 3 x 3 on Winograd's tiles.
void add_workspace(LayerMemory& memory, const LayerList& list, const Layer& layer, const std::string& precision) {
  for (const TraceKernel& kernel : layer.forward) {
    if (!kernel.is_convolution()) continue;
    const bool is_plain =
        kernel.window[1] == 3 && kernel.window[2] == 3 && kernel.stride == decltype(kernel.stride){1, 1, 1};
    const bool shares_filters = kernel.grows == TraceKernel::Growth::batch;
    double share = 0;
    if (precision != "fp32") {
      share = list.channels_last ? 0 : is_half(precision) ? 0.5 : 1;
    } else if (is_plain && shares_filters) {
      share = kTile;
      memory.tiles = kTileFilter * kBytesPerNumber * static_cast<double>(layer.parameters);
    }
    memory.workspace = share * (layer.read + layer.written);
    if (precision != "fp32" || !is_plain) return;
    const auto spectra = [&](std::size_t extent) {
      return std::ceil(static_cast<double>(kernel.out(extent)) / kSpectrumSide);
    };
    memory.tried = kSpectrum * spectra(1) * spectra(2) * static_cast<double>(kernel.in_channels + kernel.out_channels);
    (shares_filters ? memory.tried_tiles : memory.tried) +=
        kSpectrum * static_cast<double>(kernel.in_channels * kernel.out_channels) / static_cast<double>(kernel.groups);
    return;
  }
}

LayerMemory memory_of(const LayerList& list, const Layer& layer) {
  const std::string& precision = layer.precision.empty() ? list.precision : layer.precision;
  const double size = is_half(precision) ? 0.5 : 1;
  LayerMemory memory;
  memory.kept = size * (layer.kept + layer.scaled) + layer.filters;
  // The gradient of a product needs the gradient of its result; those of other layers lie in the same memory or are
  // functions of what is kept.
  const std::string op = layer.forward.empty() ? "" : layer.forward.front().op;
  const bool product = layer.flops > 0 || layer.parameters > 0 || op == "broadcast";
  if (product) memory.again = size * (layer.written + layer.scaled) + 2 * layer.filters;
  if (layer.again) memory.again = size * *layer.again;
  add_workspace(memory, list, layer, precision);
  const double gradients = size * (layer.read + layer.written);
  memory.passing_again = gradients + kFilterGradientsAgain * layer.filters;
  memory.passing = gradients + kFilterGradients * layer.filters;
  // The copy of the weights, in 16 bits or scaled, which the backward pass needs.
  if (is_half(precision) || list.equalized)
    memory.copies = size * kBytesPerNumber * static_cast<double>(layer.parameters);
  return memory;
}

/// What lies on the device at some time, beside what stays.
struct Use {
  double activations = 0, double_backward = 0, passing = 0;
  double sum() const { return activations + double_backward + passing; }
};

/// Plays the passes of a step.
class PlayedStep {
 public:
  PlayedStep(const LayerList& list, int batch) : list_(list), batch_(batch) {
    for (const auto& [name, network] : list.networks) {
      std::vector<LayerMemory>& layers = layers_[name];  // none of a network that only reshapes
      for (const Layer& layer : network.layers) layers.push_back(memory_of(list, layer));
    }
  }

  Use peak() {
    const std::vector<double> kept = kept_passes();
    for (std::size_t i = 0; i < list_.step.size(); ++i) {
      const LayerPass& pass = list_.step[i];
      if (pass.kind == PassKind::forward)
        forward(pass, kept[i]);
      else if (pass.kind != PassKind::update)
        backward(pass);
    }
    return peak_;
  }

 private:
  struct Graph {
    std::string network;
    double images;  ///< for which it is kept
    bool differentiable;
  };

  /// For each forward pass, how many of its passes a backward pass goes back through: the last ones before it of its
  /// network. If a step updates several times, each time only the passes since the last update live.
  std::vector<double> kept_passes() const {
    std::vector<double> kept(list_.step.size(), 0);
    std::map<std::string, double> wanted;
    double rounds = 1;
    for (std::size_t i = list_.step.size(); i-- > 0;) {
      const LayerPass& pass = list_.step[i];
      double& left = wanted[pass.network];
      if (pass.kind == PassKind::update) {
        left = 0, rounds = std::max(1.0, pass.times);
      } else if (pass.kind != PassKind::forward) {
        left += pass.times;
      } else {
        const double used = std::min(left, pass.times);
        left -= used;
        // A regularizer of some steps runs whole in these.
        if (used > 1e-9) kept[i] = std::max(1.0, pass.times / rounds) * used / pass.times;
      }
    }
    return kept;
  }

  void forward(const LayerPass& pass, double times) {
    const double images = batch_ * pass.images;
    const bool tries = tries_algorithms(pass, images);
    Use now = live_;
    for (const LayerMemory& layer : layers_.at(pass.network)) {
      now.passing = layer.passing * images + layer.workspace_of(images, tries);  // input, result and workspace
      see(now);
      if (times > 0) now.activations += layer.kept * images + layer.copies;
    }
    if (times <= 0) return;
    graphs_.push_back({pass.network, images * times, pass.differentiable});
    live_ = held();
    see(live_);
  }

  /// Goes back through the graphs of the network that were made last.
  void backward(const LayerPass& pass) {
    double left = batch_ * std::max(1.0, pass.times);
    while (left > 1e-9) {
      const auto last = std::find_if(graphs_.rbegin(), graphs_.rend(),
                                     [&](const Graph& graph) { return graph.network == pass.network; });
      if (last == graphs_.rend()) return;
      const Graph graph = *last;
      left -= std::max(graph.images, 1.0);
      graphs_.erase(std::next(last).base());
      live_ = held();
      go_back(graph, pass);
    }
  }

  void go_back(const Graph& graph, const LayerPass& pass) {
    const std::vector<LayerMemory>& layers = layers_.at(graph.network);
    // The images of one pass; of several, one after the other goes back.
    const double images = std::min<double>(graph.images, batch_);
    const bool tries = tries_algorithms(pass, images);
    Use now = live_;
    for (const LayerMemory& layer : layers) {
      now.activations += layer.kept * graph.images + layer.copies;
      if (graph.differentiable) now.double_backward += layer.again * graph.images + layer.copies;
    }
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      now.passing =
          (graph.differentiable ? layer->passing_again : layer->passing) * images + layer->workspace_of(images, tries);
      see(now);
      // Gradients that will be differentiated leave everything in place.
      if (!graph.differentiable) now.activations -= layer->kept * images;
    }
  }

  /// True for the first pass of its kind over so many images, where the framework tries algorithms then. What every
  /// step does comes before what some steps do.
  bool tries_algorithms(const LayerPass& pass, double images) {
    if (list_.executor != "graph") return false;
    const bool comes_before = std::any_of(list_.step.begin(), list_.step.end(), [&](const LayerPass& other) {
      return other.times >= 1 && other.network == pass.network && other.kind == pass.kind &&
             other.images * batch_ == images;
    });
    return (pass.times >= 1 || !comes_before) && tried_.emplace(pass.network, pass.kind, images).second;
  }

  Use held() const {
    Use use;
    for (const Graph& graph : graphs_)
      for (const LayerMemory& layer : layers_.at(graph.network))
        use.activations += layer.kept * graph.images + layer.copies;
    return use;
  }

  void see(const Use& now) {
    if (now.sum() > peak_.sum()) peak_ = now;
  }

  const LayerList& list_;
  const double batch_;
  std::map<std::string, std::vector<LayerMemory>> layers_;
  std::vector<Graph> graphs_;
  std::set<std::tuple<std::string, PassKind, double>> tried_;
  Use live_, peak_;
};

}  // namespace

std::map<std::string, double> allocated_memory(const LayerList& list, int batch) {
  double parameters = 0, trained = 0, averages = 0;
  for (const auto& [name, network] : list.networks) {
    const double bytes = network.copies * kBytesPerNumber * static_cast<double>(network.total().parameters);
    parameters += bytes + network.copies * kBytesPerNumber * static_cast<double>(network.frozen_parameters);
    trained += bytes;
    if (network.average) averages += bytes;
  }
  const Use peak = PlayedStep(list, batch).peak();
  std::map<std::string, double> bytes{{"parameters", parameters},
                                      {"gradients", trained},
                                      {"optimizer", (list.optimizer == "sgd" ? 1 : 2) * trained},
                                      {"activations", peak.activations},
                                      {"passing", peak.passing},
                                      {"workspace", kBlasWorkspace},
                                      {"data", batch * list.bytes_per_image}};
  if (list.gradient_sums > 0) bytes["gradient_sums"] = list.gradient_sums * trained;
  if (averages > 0) bytes["averages"] = averages;
  if (peak.double_backward > 0) bytes["double_backward"] = peak.double_backward;
  if (list.bytes_beside > 0) bytes["beside"] = list.bytes_beside;
  return bytes;
}

}  // namespace ganymede::traces
