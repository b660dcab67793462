#include "kernel/layer.hpp"

namespace ganymede::kernel {
namespace {

/// y [features x batch] = 1 / (1 + exp(-x)), in place
class Sigmoid final : public Layer {
 public:
  Sigmoid(std::string name, int features) : Layer(std::move(name)), features_(features) {}

  std::string kind() const override { return "sigmoid"; }
  int inputs() const override { return features_; }
  int outputs() const override { return features_; }

  void plan(Arena&, int) override {}

  Tensor forward(Ops& ops, Tensor x, RandomStream&) override { return y_ = infer(ops, x); }
  Tensor infer(Ops& ops, Tensor x) override {
    ops.sigmoid_forward(x);
    return x;
  }
  Tensor backward(Ops& ops, Tensor dy, float*, const Want&) override {
    ops.sigmoid_backward(dy, y_);
    return dy;
  }

 private:
  int features_;
  Tensor y_;
};

}  // namespace

std::unique_ptr<Layer> sigmoid(std::string name, int features) {
  return std::make_unique<Sigmoid>(std::move(name), features);
}

}  // namespace ganymede::kernel
