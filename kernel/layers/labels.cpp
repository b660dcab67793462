#include <fmt/format.h>

#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y = x and, at every position, the label of the image: a channel for each class, 1 at the image's class, else 0
class Labelled final : public Layer {
 public:
  Labelled(std::string name, int channels, int positions, int classes, std::shared_ptr<const Tensor> labels)
      : Layer(std::move(name)),
        channels_(channels),
        positions_(positions),
        classes_(classes),
        labels_(std::move(labels)) {}

  std::string kind() const override { return fmt::format("label of {} classes", classes_); }
  int inputs() const override { return channels_ * positions_; }
  int outputs() const override { return (channels_ + classes_) * positions_; }
  void plan(Arena& arena, int batch) override { y_ = arena.tensor(outputs(), batch); }
  Tensor forward(TensorOps& ops, Tensor x, RandomStream&) override { return infer(ops, x); }
  Tensor infer(TensorOps& ops, Tensor x) override {
    ops.append_channels(y_, x, *labels_);
    return y_;
  }
  Tensor backward(TensorOps& ops, Tensor dy, void* scratch, const GradientRequest& request) override {
    return leading(ops, dy, scratch, request.input);
  }

  void plan_tangent(Arena& arena, int batch) override { y_dot_ = arena.tensor(outputs(), batch); }
  Tensor tangent(TensorOps& ops, Tensor x_dot) override {
    ops.append_channels(y_dot_, x_dot, {nullptr, classes_, x_dot.batch});  // labels do not move
    return y_dot_;
  }
  Adjoints tangent_backward(TensorOps& ops, Adjoints dy, AdjointScratch scratch, bool needs_input) override {
    const Tensor dx_dot = leading(ops, dy.tangent, scratch.tangent, needs_input);
    if (dy.value.data == nullptr) return {{}, dx_dot};
    return {leading(ops, dy.value, scratch.value, needs_input), dx_dot};
  }

 private:
  Tensor leading(TensorOps& ops, Tensor dy, void* scratch, bool needed) const {
    const Tensor dx{scratch, inputs(), dy.batch};
    if (needed) ops.leading_channels(dx, dy, positions_);
    return dx;
  }

  int channels_, positions_, classes_;
  std::shared_ptr<const Tensor> labels_;
  Tensor y_, y_dot_;
};

}  // namespace

std::unique_ptr<Layer> labelled(std::string name, int channels, int positions, int classes,
                                std::shared_ptr<const Tensor> labels) {
  return std::make_unique<Labelled>(std::move(name), channels, positions, classes, std::move(labels));
}

}  // namespace ganymede::kernel
