#include "traces/layer_walk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/json.hpp"
#include "traces/layer_images.hpp"

namespace ganymede::traces {
namespace {

constexpr double kMaxImageNumbers = 1e12;  // of one image after a layer, or of weights: far above any that fits a GPU
constexpr std::size_t kMaxLayers = 100'000;

/// Walks the layers of a network and keeps the shape of the activations between them.
class Walk {
 public:
  explicit Walk(const LayerShape& input) : shape_(input) {}

  void layers(const JsonNode& list) {
    for (const JsonNode& node : list.as_array())
      if (!node.value().is_null()) layer(node);  // null: at_image() has left it out
  }
  const LayerShape& shape() const { return shape_; }
  std::vector<Layer> take() {
    for (Layer& layer : costs_)
      layer.launches = std::count_if(layer.forward.begin(), layer.forward.end(),
                                     [](const TraceKernel& kernel) { return kernel.op != kCast; });
    return std::move(costs_);
  }

 private:
  void layer(const JsonNode& node) {
    JsonObject in(node);
    const std::string kind = in.required("kind").as_choice(
        {"convolution", "transposed-convolution", "linear", "attention", "norm", "activation", "elementwise",
         "upsample", "downsample", "concat", "reshape", "constant", "residual", "branch", "side", "repeat"});
    const std::string around = precision_;
    if (const auto own = in.optional("precision")) precision_ = own->as_choice({"fp32", "tf32", "bf16", "fp16"});
    if (kind == "convolution" || kind == "transposed-convolution") {
      convolution(in, kind != "convolution");
    } else if (kind == "linear") {
      linear(in);
    } else if (kind == "attention") {
      attention(in);
    } else if (kind == "norm") {
      norm(in);
    } else if (kind == "activation") {
      activation(optional_flag(in, "bias", false));
    } else if (kind == "elementwise") {
      elementwise(in);
    } else if (kind == "upsample" || kind == "downsample") {
      resize(in, kind == "upsample");
    } else if (kind == "concat") {
      concat(in);
    } else if (kind == "reshape") {
      shape_ = read_layer_shape(in.required("to"));
    } else if (kind == "constant") {
      constant(in);
    } else if (kind == "residual") {
      residual(in);
    } else if (kind == "branch" || kind == "side") {
      beside(in, kind == "side");
    } else {
      const JsonNode inner = in.required("layers");
      for (auto left = in.required("times").as_integer(0, 10'000); left > 0; --left) layers(inner);
    }
    precision_ = around;
    if (const auto keeps = costs_.empty() || kind == "reshape" ? std::nullopt : in.optional("keeps"))
      own_ = read_keeps(*keeps, shape_.size(), costs_.back());
    in.finish();
    if (costs_.size() > kMaxLayers) node.fail(fmt::format("more than {} layers", kMaxLayers));
    if (shape_.size() > kMaxImageNumbers)
      node.fail(fmt::format("its result has {} numbers for each image, expected at most {:.0e}", shape_.text(),
                            kMaxImageNumbers));
  }

  /// Checks the length of a side after a layer, which must not be larger than that of an input may be.
  void check_side(const JsonObject& in, std::int64_t length) const {
    const int most = shape_.dimensions == 1 ? kMaxLength : kMaxSide;
    if (length > most) in.node().fail(fmt::format("its result has a side of {}, expected at most {}", length, most));
  }

  /// Adds a layer that reads `in` numbers and writes `out`, which are kept for the backward pass.
  Layer& add(const char* what, double flops, double in, double out, std::int64_t parameters) {
    Layer& layer = costs_.emplace_back();
    layer.flops = flops, layer.parameters = parameters, layer.precision = precision_;
    layer.read = kBytesPerNumber * in, layer.written = layer.kept = kBytesPerNumber * out;
    label_ = fmt::format("{} {}", costs_.size(), what);
    own_ = true, needed_ = false;
    return layer;
  }

  /// A kernel of the last layer over `elements` numbers for each image, or for all images together.
  TraceKernel moving(const char* op, double elements, double reads, double writes, bool each_image = true) const {
    TraceKernel kernel;
    kernel.layer = label_;
    kernel.op = op;
    kernel.cols = std::llround(elements);
    kernel.reads = reads, kernel.writes = writes;
    if (!each_image) kernel.grows = TraceKernel::Growth::none;
    return kernel;
  }
  TraceKernel reducing(const char* op, double rows, double cols, double reads, double writes) const {
    TraceKernel kernel = moving(op, cols, reads, writes);
    kernel.kind = TraceKernel::Kind::normalization;
    kernel.rows = std::llround(rows);
    return kernel;
  }
  TraceKernel product(TraceKernel::Growth grows, double m, double n, double k, bool a, bool b) const {
    TraceKernel kernel;
    kernel.layer = label_;
    kernel.kind = grows == TraceKernel::Growth::batch ? TraceKernel::Kind::batched_product : TraceKernel::Kind::product;
    kernel.grows = grows;
    kernel.m = std::llround(m), kernel.n = std::llround(n), kernel.k = std::llround(k);
    kernel.transposed_a = a, kernel.transposed_b = b;
    return kernel;
  }

  /// Adds the kernels of a convolution, of its gradients and of its bias to the last layer. `shape` is the convolution;
  /// a transposed one is its gradient of the inputs. Each image may have filters of its own, which other layers make.
  void add_convolution(TraceKernel shape, bool transposed, bool bias, bool each_image = false) {
    Layer& layer = costs_.back();
    shape.layer = label_;
    shape.grows = each_image ? TraceKernel::Growth::groups : TraceKernel::Growth::batch;
    const auto as = [&](TraceKernel::Kind kind) {
      shape.kind = kind;
      return shape;
    };
    const double out = layer.written / kBytesPerNumber;
    const auto weights =
        shape.out_channels * shape.in_channels / shape.groups * shape.window[0] * shape.window[1] * shape.window[2];
    if (!each_image) layer.forward.push_back(moving(kCast, static_cast<double>(weights), 1, 0.5, false));
    layer.forward.push_back(
        as(transposed ? TraceKernel::Kind::convolution_data_gradient : TraceKernel::Kind::convolution));
    layer.to_inputs.push_back(
        as(transposed ? TraceKernel::Kind::convolution : TraceKernel::Kind::convolution_data_gradient));
    layer.to_parameters.push_back(as(TraceKernel::Kind::convolution_weight_gradient));
    if (!bias) return;
    const auto channels = static_cast<double>(transposed ? shape.in_channels : shape.out_channels);
    layer.forward.push_back(moving("bias", out, 1, 1));
    layer.to_parameters.push_back(reducing("sum", out / channels, channels, 1, 0));
  }

  /// Adds an activation. It overwrites its input, as `inplace=True` of PyTorch and fused kernels do, unless another
  /// layer reads that too; either way its result is needed for the backward pass. A bias may be added in its kernel.
  void activation(bool bias) {
    const bool in_place = own_;
    Layer& layer = add("activation", 0, shape_.size(), shape_.size(), bias ? shape_.channels : 0);
    layer.forward = {moving("activation", shape_.size(), 1, 1)};
    if (bias) layer.to_parameters = {reducing("sum", shape_.pixels(), shape_.channels, 1, 0)};
    layer.to_inputs = {moving("activation_backward", shape_.size(), 2, 1)};
    if (in_place) layer.kept = 0;
    needed_ = true;
  }

  /// Adds a kernel that reads and writes each number so many times, such as the product with a style or with noise.
  void elementwise(JsonObject& in) {
    const auto number = [&](const char* key) { return in.optional(key) ? in.optional(key)->as_number(0, 1000) : 1; };
    const double reads = number("reads"), writes = number("writes");
    auto back = optional_pair(in, "backward", {reads + writes, reads}, "reads and writes, such as [2, 1]");
    const auto shared = optional_pair(in, "shared", {0, 0}, "words forward and backward, such as [33, 33]");
    const bool broadcast = optional_flag(in, "broadcast", false);
    Layer& layer = add("elementwise", 0, reads * shape_.size(), writes * shape_.size(),
                       optional_integer(in, "parameters", 0, 0, kMaxChannels));
    layer.forward = {moving(broadcast ? "broadcast" : "elementwise", shape_.size(), reads, writes)};
    layer.forward.back().shared = shared[0];
    if (broadcast && back[0] >= reads && back[1] >= writes) {  // the input's gradient is such a kernel too
      layer.to_inputs = {moving("broadcast", shape_.size(), reads, writes)};
      back[0] -= reads, back[1] -= writes;
    }
    if (back[0] + back[1] > 0) {
      layer.to_inputs.push_back(moving("elementwise_backward", shape_.size(), back[0], back[1]));
      layer.to_inputs.back().shared = shared[1];
    }
    needed_ = true;
  }

  /// Forgets the result of the last layer if the sum that follows is all that reads it: no backward pass needs it.
  void end_way() {
    if (own_ && !needed_) costs_.back().kept = 0;
  }

  void convolution(JsonObject& in, bool transposed) {
    const LayerShape from = shape_;
    const int out = static_cast<int>(in.required("out").as_integer(1, kMaxChannels));
    const Extents one = {1, 1, 1}, zero = {0, 0, 0}, most = {1024, 1024, 1024};
    TraceKernel shape;
    shape.window = read_layer_extents(in, "kernel", from, 1, std::nullopt, one, most);
    shape.stride = read_layer_extents(in, "stride", from, 1, one, one, most);
    Extents same, below = zero;
    for (std::size_t i = 0; i < 3; ++i) same[i] = (shape.window[i] - 1) / 2, below[i] = shape.stride[i] - 1;
    shape.padding = read_layer_extents(in, "padding", from, 0, same, zero, most);
    // As in PyTorch: beyond it, the convolution that is mirrored would have another input.
    const Extents extra =
        transposed ? read_layer_extents(in, "output_padding", from, 0, zero, zero, below) : Extents{0, 0, 0};
    const int groups = optional_integer(in, "groups", 1, 1, kMaxChannels);
    const bool bias = optional_flag(in, "bias", true);
    if (from.channels % groups != 0 || out % groups != 0)
      in.node().fail(fmt::format("{} groups must divide both {} and {} channels", groups, from.channels, out));
    shape_.channels = out;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t length = from.sides[i], padded = length + 2 * shape.padding[i] - shape.window[i];
      const std::int64_t to = transposed
                                  ? (length - 1) * shape.stride[i] - 2 * shape.padding[i] + shape.window[i] + extra[i]
                                  : padded / shape.stride[i] + 1;
      if (to < 1 || (!transposed && padded < 0))
        in.required("kernel").fail(fmt::format("a kernel of {} with a padding of {} leaves nothing of an input of {}",
                                               shape.window[i], shape.padding[i], from.sides_text()));
      check_side(in, to);
      shape_.sides[i] = to;
    }
    const auto taps = static_cast<double>(shape.window[0] * shape.window[1] * shape.window[2]);
    const int group = from.channels / groups;
    const double weights = taps * group * out;
    if (weights > kMaxImageNumbers)
      in.node().fail(fmt::format("{:.6g} weights, expected at most {:.0e}", weights, kMaxImageNumbers));
    const double places = transposed ? from.pixels() : shape_.pixels();
    const bool each_image = optional_flag(in, "each_image", false);
    Layer& layer = add(transposed ? "transposed-convolution" : "convolution", 2 * weights * places, from.size(),
                       shape_.size(), static_cast<std::int64_t>(weights) + (bias ? out : 0));
    if (each_image) layer.read += kBytesPerNumber * weights, layer.kept += kBytesPerNumber * weights;
    if (optional_flag(in, "styles", false)) layer.scaled = layer.read + layer.written;
    if (layer.scaled > 0 && taps > 1) layer.filters = kBytesPerNumber * weights;
    const LayerShape& large = transposed ? shape_ : from;
    shape.in_channels = large.channels, shape.out_channels = transposed ? from.channels : out;
    shape.groups = groups, shape.in = large.sides;
    add_convolution(shape, transposed, bias, each_image);
  }

  void linear(JsonObject& in) {
    const int out = static_cast<int>(in.required("out").as_integer(1, std::int64_t{kMaxChannels} * 16));
    const bool bias = optional_flag(in, "bias", true);
    const double from = shape_.size();
    if (from * out > kMaxImageNumbers)
      in.node().fail(
          fmt::format("{:.6g} inputs by {} outputs, expected at most {:.0e} weights", from, out, kMaxImageNumbers));
    shape_ = {out};
    Layer& layer = add("linear", 2 * from * out, from, out, static_cast<std::int64_t>(from) * out + (bias ? out : 0));
    layer.forward = {moving(kCast, from * out, 1, 0.5, false),
                     product(TraceKernel::Growth::m, 1, out, from, false, true)};
    layer.to_inputs = {product(TraceKernel::Growth::m, 1, from, out, false, false)};
    layer.to_parameters = {product(TraceKernel::Growth::k, out, from, 1, true, false)};
    if (!bias) return;
    layer.forward.push_back(moving("bias", out, 1, 1));
    layer.to_parameters.push_back(reducing("sum", 1, out, 1, 0));
  }

  /// Adds self-attention over pixels. Keys and values may be pooled, as in SAGAN and BigGAN.
  void attention(JsonObject& in) {
    const int key = static_cast<int>(in.required("key").as_integer(1, kMaxChannels));
    const int value = static_cast<int>(in.required("value").as_integer(1, kMaxChannels));
    const Extents pool = read_layer_extents(in, "pool", shape_, 1, Extents{1, 1, 1}, {1, 1, 1}, shape_.sides);
    const double tokens = shape_.pixels();
    const double others = tokens / static_cast<double>(pool[0] * pool[1] * pool[2]);
    const double channels = shape_.channels, projections = channels * (2.0 * key + 2.0 * value);
    const double scores = tokens * others;
    Layer& layer = add("attention", 2 * tokens * projections + 2 * scores * (key + value), shape_.size() + 2 * scores,
                       tokens * (2 * key + value) + 2 * scores + shape_.size(), static_cast<std::int64_t>(projections));
    add_attention(layer, key, value, tokens, others);
    needed_ = true;  // most of what it writes are inner values, which its backward pass needs
  }

  /// The kernels of attention: four convolutions of one pixel (queries, keys, values and the result), pooling, the
  /// scores, their softmax and the weighted sums.
  void add_attention(Layer& layer, int key, int value, double tokens, double others) {
    TraceKernel shape;
    shape.in = shape_.sides;
    for (const auto& [from, to] : {std::pair{shape_.channels, key}, std::pair{shape_.channels, key},
                                   std::pair{shape_.channels, value}, std::pair{value, shape_.channels}}) {
      shape.in_channels = from, shape.out_channels = to;
      add_convolution(shape, false, false);
    }
    layer.inner = {layer.to_inputs.back()};  // through the result's convolution
    layer.to_inputs.pop_back();
    TraceKernel softmax = reducing("softmax", tokens, others, 1, 1);
    softmax.kind = TraceKernel::Kind::softmax;
    const bool pooled = others < tokens;
    if (pooled) layer.forward.push_back(moving("pool", tokens * (key + value), 1, others / tokens));
    for (TraceKernel& kernel :
         std::vector{product(TraceKernel::Growth::batch, tokens, others, key, true, false), softmax,
                     product(TraceKernel::Growth::batch, value, tokens, others, false, true)})
      layer.forward.push_back(kernel);
    softmax.op = "softmax_backward", softmax.reads = 2;
    for (TraceKernel& kernel :
         std::vector{product(TraceKernel::Growth::batch, value, others, tokens, false, false),
                     product(TraceKernel::Growth::batch, tokens, others, value, true, false), softmax,
                     product(TraceKernel::Growth::batch, key, tokens, others, false, true),
                     product(TraceKernel::Growth::batch, key, others, tokens, false, false)})
      layer.inner.push_back(kernel);
    if (pooled) layer.inner.push_back(moving("pool_backward", tokens * (key + value), others / tokens, 1));
  }

  /// Joins the main path with `channels` more: both are copied into one result, which the next layer keeps.
  void concat(JsonObject& in) {
    const JsonNode node = in.required("channels");
    const std::int64_t channels = shape_.channels + node.as_integer(1, kMaxChannels);
    if (channels > kMaxChannels)
      node.fail(fmt::format("{} channels together, expected at most {}", channels, kMaxChannels));
    end_way();  // like a sum, it needs nothing of its input for the backward pass
    shape_.channels = static_cast<int>(channels);
    Layer& layer = add("concat", 0, shape_.size(), shape_.size(), 0);
    layer.forward = {moving("copy", shape_.size(), 1, 1)};
  }

  void constant(JsonObject& in) {
    shape_ = read_layer_shape(in.required("to"));
    Layer& layer = add("constant", 0, 0, shape_.size(), static_cast<std::int64_t>(shape_.size()));
    layer.forward = {moving("copy", shape_.size(), 0, 1)};
    layer.to_parameters = {reducing("sum", 1, shape_.size(), 1, 0)};
  }

  void norm(JsonObject& in) {
    // The input is read twice: to compute the statistics, and to apply them.
    Layer& layer =
        add("norm", 0, 2 * shape_.size(), shape_.size(), optional_flag(in, "affine", true) ? 2 * shape_.channels : 0);
    const double channels = shape_.channels, pixels = shape_.pixels();
    layer.forward = {reducing("norm_statistics", channels, pixels, 1, 0), moving("norm", shape_.size(), 1, 1)};
    layer.inner = {reducing("norm_sums", channels, pixels, 2, 0)};
    layer.to_inputs = {moving("norm_backward", shape_.size(), 2, 1)};
  }

  void resize(JsonObject& in, bool up) {
    const Extents factor =
        read_layer_extents(in, "factor", shape_, 1, std::nullopt, {1, 1, 1}, Extents{1024, 1024, 1024});
    const double before = shape_.size();
    end_way();  // like a sum, it needs nothing of its input for the backward pass
    for (std::size_t i = 0; i < 3; ++i) {
      std::int64_t& side = shape_.sides[i];
      if (!up && factor[i] > side)
        in.required("factor").fail(fmt::format("{} cannot be made smaller {} times", shape_.sides_text(), factor[i]));
      side = up ? side * factor[i] : side / factor[i];
      check_side(in, side);
    }
    const double after = shape_.size(), larger = std::max(before, after);
    Layer& layer = add(up ? "upsample" : "downsample", 0, before, after, 0);
    layer.forward = {moving(up ? "upsample" : "downsample", larger, before / larger, after / larger)};
    layer.to_inputs = {
        moving(up ? "upsample_backward" : "downsample_backward", larger, after / larger, before / larger)};
  }

  /// Adds layers whose result does not go on in the main path. A branch starts from the main path, a side from an input
  /// of its own.
  void beside(JsonObject& in, bool own_input) {
    const LayerShape start = shape_;
    if (own_input) shape_ = read_layer_shape(in.required("input"));
    own_ = false;
    layers(in.required("layers"));
    shape_ = start, own_ = false;  // the main path's last result is not that of the last layer, or has two readers
  }

  /// Adds a residual block: its layers and its shortcut start from the same input, and their results are added.
  void residual(JsonObject& in) {
    const LayerShape start = shape_;
    own_ = false;
    layers(in.required("layers"));
    end_way();
    const LayerShape end = shape_;
    shape_ = start, own_ = false;
    if (const auto shortcut = in.optional("shortcut")) layers(*shortcut);
    end_way();
    if (shape_ != end)
      in.node().fail(fmt::format("its ways end in {} and {}, which cannot be added", end.text(), shape_.text()));
    Layer& layer = add("residual", 0, 2 * shape_.size(), shape_.size(), 0);
    layer.forward = {moving("add", shape_.size(), 2, 1)};
    layer.to_inputs = {moving("add", start.size(), 2, 1)};  // the gradients of both ways
  }

  LayerShape shape_;
  std::string label_;      // of the last layer: its place and its kind
  bool own_ = false;       // the last of `costs_` made the current activations, and no other layer reads them
  bool needed_ = false;    // its own backward pass reads them
  std::string precision_;  // of the layers that are read now; empty: that of the list
  std::vector<Layer> costs_;
};

}  // namespace

LayerNetwork read_layer_network(const JsonNode& node) {
  JsonObject in(node);
  LayerNetwork network;
  if (const auto copies = in.optional("copies")) network.copies = static_cast<double>(copies->as_integer(1, 1000));
  network.average = optional_flag(in, "average", false), network.frozen = optional_flag(in, "frozen", false);
  Walk walk(read_layer_shape(in.required("input")));
  const JsonNode layers = in.required("layers");
  walk.layers(layers);
  in.optional("about"), in.finish();
  network.output = walk.shape().numbers(), network.layers = walk.take();
  if (network.frozen)
    for (Layer& layer : network.layers)
      network.frozen_parameters += std::exchange(layer.parameters, 0), layer.to_parameters.clear();
  else if (network.total().parameters == 0)
    layers.fail("nothing in it is trained");
  return network;
}

}  // namespace ganymede::traces
