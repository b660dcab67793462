// Writing a document as JSON.

#include <fmt/format.h>

#include "common/json_value.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

class Writer final : public Walk {
 public:
  OrderedJson take() { return std::move(stack_.front()); }

  bool takes(bool present) const override { return present; }
  void derived(std::string_view name, double value, const About&) override { stack_.back()[name] = value; }
  void constant(std::string_view name, const OrderedJson& value, const About&) override { stack_.back()[name] = value; }

 protected:
  // The value that is being written is the last of the stack; a value that is complete goes into the one below it.
  bool enter_member(std::string_view name, const About&, bool present) override {
    if (!present) return false;
    names_.emplace_back(name);
    stack_.emplace_back();
    return true;
  }
  void leave_member() override {
    OrderedJson value = pop();
    stack_.back()[names_.back()] = std::move(value);
    names_.pop_back();
  }
  bool enter_object(std::string_view, const About&) override {
    stack_.back() = OrderedJson::object();
    return true;
  }
  void leave_object() override {}
  bool enter_nullable(bool present) override { return present; }
  void leave_nullable() override {}
  std::size_t enter_list(std::size_t size, bool) override {
    stack_.back() = OrderedJson::array();
    return size;
  }
  void enter_element(std::size_t) override { stack_.emplace_back(); }
  void leave_element() override {
    OrderedJson value = pop();
    stack_.back().push_back(std::move(value));
  }
  void leave_list() override {}
  std::vector<std::string> enter_map(std::vector<std::string> names) override {
    stack_.back() = OrderedJson::object();
    return names;
  }
  void enter_entry(std::string_view name) override { enter_member(name, {}, true); }
  void leave_entry() override { leave_member(); }

  void integer(std::int64_t& value, const About&, std::int64_t) override { stack_.back() = value; }
  void leaf(double& value, const About&) override { stack_.back() = value; }
  void leaf(bool& value, const About&) override { stack_.back() = value; }
  void leaf(std::uint64_t& value, const About&) override { stack_.back() = value; }
  void leaf(std::string& value, const About&) override { stack_.back() = value; }
  void leaf(MicroUsd& value, const About&) override { stack_.back() = decimal(value); }
  void leaf(MicroUsdPerHour& value, const About&) override { stack_.back() = decimal(value); }
  void leaf(Interval& value, const About&) override { stack_.back() = {value.low, value.high}; }
  void leaf(UsdInterval& value, const About&) override {
    stack_.back() = {fmt::format("{:.6f}", value.low), fmt::format("{:.6f}", value.high)};
  }
  void leaf(std::vector<double>& value, const About&) override { stack_.back() = value; }
  void with_unit(Seconds& value) override { stack_.back() = fmt::format("{}s", value.si); }
  void with_unit(Bytes& value) override { stack_.back() = fmt::format("{}B", value.si); }
  void with_unit(BytesPerSecond& value) override { stack_.back() = fmt::format("{}B/s", value.si); }
  void with_unit(FlopsPerSecond& value) override { stack_.back() = fmt::format("{}flop/s", value.si); }
  void leaf(JsonText& value, const About&) override { stack_.back() = OrderedJson::parse(value.text); }

 private:
  OrderedJson pop() {
    OrderedJson value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  std::vector<OrderedJson> stack_ = std::vector<OrderedJson>(1);
  std::vector<std::string> names_;
};

}  // namespace

OrderedJson written(const Description& description) {
  Writer writer;
  description(writer);
  return writer.take();
}

}  // namespace ganymede::documents
