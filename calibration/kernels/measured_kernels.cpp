#include "calibration/kernels/measured_kernels.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "common/csv.hpp"
#include "common/errors.hpp"
#include "common/printable.hpp"
#include "common/text.hpp"

namespace ganymede::calibration {
namespace {

using Rows = std::vector<MeasuredKernel>;

constexpr double kMaxMicroseconds = 1e9;  // a quarter of an hour

class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvTable::Row& row) : table_(table), row_(row) {}

  const std::string& text(std::string_view column) const { return table_.at(row_, column); }
  bool blank(std::string_view column) const { return text(column).empty(); }
  std::string text_if_there(std::string_view column) const { return table_.has(column) ? text(column) : ""; }
  [[noreturn]] void fail(std::string_view column, std::string_view expected) const {
    table_.fail(row_, column, fmt::format("found \"{}\", expected {}", text(column), expected));
  }

  std::int64_t whole(std::string_view column, std::int64_t least = 1) const {
    std::int64_t value = 0;
    if (!parsed(column, value) || value < least || value > kMaxSize)
      fail(column, fmt::format("an integer from {} to {}", least, kMaxSize));
    return value;
  }

  double microseconds(std::string_view column) const {
    double value = 0;
    if (!parsed(column, value) || !(value > 0) || value > kMaxMicroseconds)
      fail(column, fmt::format("a time in microseconds above 0, at most {:g}", kMaxMicroseconds));
    return 1e-6 * value;
  }

  bool transposed(std::string_view column) const {
    if (text(column) != "N" && text(column) != "T") fail(column, "N or T");
    return text(column) == "T";
  }

  /// The file's line, GPU and set in a row without a kernel yet.
  MeasuredKernel started(std::string_view set) const {
    if (blank("gpu") || printable(text("gpu")) != text("gpu")) fail("gpu", "the name of a GPU");
    MeasuredKernel row;
    row.gpu = text("gpu"), row.set = set, row.line = row_.line;
    row.kernel.name = fmt::format("{}: line {}", table_.file(), row_.line);
    return row;
  }

 private:
  template <class Number>
  bool parsed(std::string_view column, Number& value) const {
    const std::string& cell = text(column);
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return error == std::errc() && end == cell.data() + cell.size();
  }

  const CsvTable& table_;
  const CsvTable::Row& row_;
};

void read_conv3x3(const RowReader& in, Rows& rows) {
  MeasuredKernel row = in.started("conv3x3");
  Kernel& c = row.kernel;
  c.kind = KernelKind::kConvolution;
  c.batch = in.whole("batch"), c.in_channels = in.whole("in_ch"), c.out_channels = in.whole("out_ch");
  c.in_h = c.in_w = in.whole("size_px");
  c.kernel_h = c.kernel_w = 3, c.pad_h = c.pad_w = 1;
  row.measured_s = in.microseconds("time_us");
  row.algorithm = in.text_if_there("algo");
  rows.push_back(row);
}

void read_product(const RowReader& in, Rows& rows, bool batched) {
  MeasuredKernel row = in.started(batched ? "bmm" : "linear");
  Kernel& product = row.kernel;
  product.kind = batched ? KernelKind::kBatchedProduct : KernelKind::kProduct;
  if (batched) product.batch = in.whole("batch");
  product.m = in.whole("rows"), product.k = in.whole("inner"), product.n = in.whole("cols");
  product.transposed_b = !batched;  // PyTorch keeps the weights of a linear layer as outputs x inputs
  row.measured_s = in.microseconds("time_us");
  rows.push_back(row);
}

void read_elementwise(const RowReader& in, Rows& rows) {
  MeasuredKernel row = in.started("elementwise");
  Kernel& kernel = row.kernel;
  kernel.op = in.text("op");
  if (kernel.op != "add" && kernel.op != "mul" && kernel.op != "relu" && kernel.op != "tanh" && kernel.op != "ln" &&
      kernel.op != "softmax")
    in.fail("op", "add, mul, relu, tanh, ln or softmax");
  kernel.kind = kernel.op == "ln"        ? KernelKind::kNormalization
                : kernel.op == "softmax" ? KernelKind::kSoftmax
                                         : KernelKind::kElementwise;
  kernel.reads_per_element = kernel.op == "add" || kernel.op == "mul" ? 2 : 1;
  kernel.rows = in.whole("rows"), kernel.cols = in.whole("cols");
  row.measured_s = in.microseconds("time_us");
  rows.push_back(row);
}

KernelPrecision deepbench_precision(const RowReader& in) {
  const std::string& name = in.text("precision");
  if (name == "fp32") return KernelPrecision::kFp32;
  if (name == "fp16_tensor" || name == "fp16_pseudo") return KernelPrecision::kFp16;
  in.fail("precision", "fp32, fp16_tensor or fp16_pseudo");
}

void read_deepbench_conv(const RowReader& in, Rows& rows) {
  MeasuredKernel row = in.started("deepbench-conv");
  Kernel& c = row.kernel;
  c.precision = deepbench_precision(in);
  c.batch = in.whole("batch"), c.in_channels = in.whole("in_ch"), c.out_channels = in.whole("out_ch");
  c.in_h = in.whole("in_h"), c.in_w = in.whole("in_w");
  c.kernel_h = in.whole("k_h"), c.kernel_w = in.whole("k_w");
  c.pad_h = in.whole("pad_h", 0), c.pad_w = in.whole("pad_w", 0);
  c.stride_h = in.whole("stride_h"), c.stride_w = in.whole("stride_w");
  constexpr std::array directions = {std::pair{"fwd_us", KernelKind::kConvolution},
                                     std::pair{"dgrad_us", KernelKind::kConvolutionDataGradient},
                                     std::pair{"wgrad_us", KernelKind::kConvolutionWeightGradient}};
  for (const auto& [column, kind] : directions) {
    if (in.blank(column)) continue;
    c.kind = kind;
    row.measured_s = in.microseconds(column);
    row.algorithm = kind == KernelKind::kConvolution ? in.text_if_there("fwd_algo") : "";
    rows.push_back(row);
  }
}

void read_deepbench_gemm(const RowReader& in, Rows& rows) {
  MeasuredKernel row = in.started("deepbench-gemm");
  Kernel& product = row.kernel;
  product.kind = KernelKind::kProduct;
  product.precision = deepbench_precision(in);
  // Its matrices stand column by column, so that the result is n x m row by row.
  product.m = in.whole("n"), product.n = in.whole("m"), product.k = in.whole("k");
  product.transposed_a = in.transposed("trans_b"), product.transposed_b = in.transposed("trans_a");
  row.measured_s = in.microseconds("time_us");
  rows.push_back(row);
}

struct Format {
  std::string_view set;
  std::vector<std::string> columns;
  void (*read)(const RowReader&, Rows&);
};

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"conv3x3", {"gpu", "batch", "in_ch", "out_ch", "size_px", "time_us"}, read_conv3x3},
      {"bmm",
       {"gpu", "batch", "rows", "inner", "cols", "time_us"},
       [](const RowReader& in, Rows& rows) { read_product(in, rows, true); }},
      {"linear",
       {"gpu", "rows", "inner", "cols", "time_us"},
       [](const RowReader& in, Rows& rows) { read_product(in, rows, false); }},
      {"elementwise", {"gpu", "op", "rows", "cols", "time_us"}, read_elementwise},
      {"deepbench-conv",
       {"gpu", "precision", "batch", "in_ch", "in_h", "in_w", "out_ch", "k_h", "k_w", "pad_h", "pad_w", "stride_h",
        "stride_w", "fwd_us", "dgrad_us", "wgrad_us"},
       read_deepbench_conv},
      {"deepbench-gemm", {"gpu", "precision", "m", "n", "k", "trans_a", "trans_b", "time_us"}, read_deepbench_gemm}};
  return all;
}

/// The columns of the format that the table lacks.
std::vector<std::string> lacking(const CsvTable& table, const Format& format) {
  std::vector<std::string> names;
  for (const std::string& column : format.columns)
    if (!table.has(column)) names.push_back(column);
  return names;
}

const Format& format_of(const CsvTable& table) {
  const Format* closest = &formats().front();
  for (const Format& format : formats()) {
    if (lacking(table, format).empty()) return format;
    if (lacking(table, format).size() < lacking(table, *closest).size()) closest = &format;
  }
  const std::vector<std::string> missing = lacking(table, *closest);
  throw ConfigError(
      fmt::format("{}: line 1: found no column {} of the set {}, which is closest; expected columns with commas "
                  "between them, times "
                  "in microseconds, as \"{}\"",
                  table.file(), list_of(missing), closest->set, fmt::join(closest->columns, ",")));
}

Rows read_rows(const CsvTable& table) {
  const Format& format = format_of(table);
  Rows rows;
  for (const CsvTable::Row& row : table.rows()) {
    if (table.has("flag") && !table.at(row, "flag").empty()) continue;
    format.read(RowReader(table, row), rows);
  }
  if (rows.empty())
    throw ConfigError(fmt::format("{}: line 2: found no measured kernel{}, expected rows below the names of columns",
                                  table.file(), table.rows().empty() ? "" : " without a flag"));
  for (const MeasuredKernel& row : rows) check_kernel(row.kernel, row.kernel.name);
  return rows;
}

}  // namespace

std::vector<std::string> measured_sets() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.emplace_back(format.set);
  return names;
}

std::vector<MeasuredKernel> read_measured_kernels(const std::filesystem::path& file) {
  return read_rows(CsvTable::load(file));
}

std::vector<MeasuredKernel> parse_measured_kernels(std::string_view text, std::string name) {
  return read_rows(CsvTable::parse(text, std::move(name)));
}

}  // namespace ganymede::calibration
