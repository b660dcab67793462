#include "traces/profiler_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/random.hpp"
#include "traces/inflated_file.hpp"
#include "traces/profiler_steps.hpp"

namespace ganymede::traces {
namespace {

/// The members of one event that are used, as they are in the file.
struct RawEvent {
  std::string phase, category, name, process, thread, collective, type;
  double start = -1, length = -1;  // microseconds
  std::int64_t device = 0, stream = -1, correlation = -1, elements = -1, bytes = -1;
};

/// The number without its fraction; -1, as for a member that is missing, if it is beyond what the type holds.
std::int64_t whole_part(double value) {
  constexpr double kBeyond = 9.2e18;
  return std::abs(value) < kBeyond ? static_cast<std::int64_t>(value) : -1;
}

double bytes_of(const std::string& type) {
  if (type == "Double" || type == "Long") return 8;
  if (type == "Half" || type == "BFloat16" || type == "Short") return 2;
  if (type == "Byte" || type == "Char" || type == "Bool") return 1;
  return 4;
}

/// True for kernels of NCCL and RCCL.
bool is_collective(const std::string& name) {
  return name.find("ncclKernel") != name.npos || name.find("ncclDevKernel") != name.npos;
}

/// True for convolutions and products of cuDNN, cuBLAS, CUTLASS, MIOpen and rocBLAS by what their kernels' names
/// contain.
bool is_matrix_kernel(std::string name) {
  name = lower_case(std::move(name));
  for (const char* part :
       {"gemm", "conv", "winograd", "cutlass", "xmma", "scudnn", "cudnn::cnn", "wgrad", "dgrad", "cijk_"})
    if (name.find(part) != std::string::npos) return name.find("nchwtonhwc") == std::string::npos;
  return false;
}

/// True for annotations that libraries write, which are not phases of a step.
bool is_library(const std::string& name) {
  for (const char* start : {"ProfilerStep", "nccl:", "enumerate(DataLoader)", "DistributedDataParallel",
                            "Optimizer.zero_grad", "autograd::", "record_param_comms"})
    if (name.starts_with(start)) return true;
  return false;
}

/// The category under its name of today. The profiler of PyTorch before 1.8 wrote none, but two processes
/// (torch/autograd/profiler.py at v1.7.0, export_chrome_trace). PyTorch 1.8 to 1.11 had others; pytorch/kineto at
/// 09b7a3110669, tb_plugin/torch_tb_profiler/profiler/trace.py, lists both.
std::string_view category_of(const RawEvent& event) {
  const std::string_view category = event.category;
  if (category.empty() && event.process == "CUDA functions") return "kernel";
  if (category.ends_with("_runtime") || category.ends_with("_driver")) return "runtime";  // of CUDA, HIP, XPU
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOld{{{"Kernel", "kernel"},
                                                                               {"Memcpy", "gpu_memcpy"},
                                                                               {"Memset", "gpu_memset"},
                                                                               {"Runtime", "runtime"},
                                                                               {"Operator", "user_annotation"}}};
  for (const auto& [old, now] : kOld)
    if (category == old) return now;
  return category;
}

/// True for names of PyTorch's operators and backward functions, "aten::add" and "AddBackward0": where annotations are
/// in one category with them, only names tell them apart.
bool is_operator(const std::string& name) {
  return name.find("::") != std::string::npos ||
         name.substr(0, name.find_last_not_of("0123456789") + 1).ends_with("Backward");
}

class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Reader(ProfilerEvents& out, const InflatedFile& characters) : out_(out), characters_(characters) {}

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return number(value, whole_part(value));
  }
  bool string(string_t& value) override;
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override {
    ++depth_;
    if (in_events_ && depth_ == event_depth_) event_ = {};
    return true;
  }
  bool end_object() override {
    if (in_events_ && depth_ == event_depth_) take();
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    ++depth_;
    const bool bare = depth_ == 1;
    if (bare) event_depth_ = 2;
    if (bare || (depth_ == 2 && keys_[1] == "traceEvents")) in_events_ = seen_events_ = true;
    return true;
  }
  bool end_array() override {
    if (depth_ + 1 == event_depth_) in_events_ = false;
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    if (depth_ < static_cast<int>(keys_.size())) keys_[static_cast<std::size_t>(depth_)] = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    if (seen_events_ && characters_.at_end()) {
      out_.cut_short = true;
      return false;
    }
    if (characters_.damaged())
      throw ConfigError(fmt::format("{}: the compressed data is damaged or cut short", out_.file));
    // The text begins with an identifier of the library and repeats the position.
    std::string_view reason = error.what();
    reason.remove_prefix(std::min(reason.find("syntax error"), reason.size()));
    throw ConfigError(fmt::format("{}: not valid JSON near byte {}, is it cut short? {}", out_.file, position,
                                  reason.substr(0, 200)));
  }

  bool seen_events() const { return seen_events_; }
  bool has_rank() const { return has_rank_; }
  std::unordered_map<std::int64_t, double> launches;                     // times, by correlation id
  std::vector<std::pair<std::int64_t, std::int64_t>> correlated_device;  // ids and device of each event in out.gpu

 private:
  bool number(double value, std::int64_t whole);
  bool number_as_text(const std::string& text);
  bool join_begin_and_end();
  bool is_argument() const {
    return in_events_ && depth_ == event_depth_ + 1 && keys_[static_cast<std::size_t>(event_depth_)] == "args";
  }
  void take();
  void take_gpu(std::string_view category);

  ProfilerEvents& out_;
  const InflatedFile& characters_;
  int depth_ = 0, event_depth_ = 3;
  std::array<std::string, 5> keys_;  // the last key at each depth
  bool in_events_ = false, seen_events_ = false, has_rank_ = false;
  RawEvent event_;
  std::unordered_map<std::string, std::int32_t> collectives_;  // index in out_.collectives by name
  std::map<std::string, std::vector<RawEvent>> begun_;         // begin events without their end, by process and thread
};

bool Reader::number(double value, std::int64_t whole) {
  if (in_events_ && depth_ == event_depth_) {
    const std::string& key = keys_[static_cast<std::size_t>(depth_)];
    if (key == "ts") event_.start = value;
    if (key == "dur") event_.length = value;
    if (key == "tid") event_.thread = std::to_string(whole);
    if (key == "pid") event_.process = std::to_string(whole);
  } else if (is_argument()) {
    const std::string& key = keys_[static_cast<std::size_t>(depth_)];
    if (key == "device") event_.device = whole;
    if (key == "stream") event_.stream = whole;
    if (key == "correlation") event_.correlation = whole;
    if (key == "In msg nelems") event_.elements = whole;
    if (key == "bytes") event_.bytes = whole;
  } else if (depth_ == 2 && keys_[1] == "distributedInfo") {
    if (keys_[2] == "rank") out_.rank = static_cast<int>(whole), has_rank_ = true;
    if (keys_[2] == "world_size") out_.ranks = static_cast<int>(whole);
  }
  return true;
}

/// Chrome's format lets writers quote what is a number.
bool Reader::number_as_text(const std::string& text) {
  const auto value = parse_number<double>(text);
  if (value && std::isfinite(*value)) return number(*value, whole_part(*value));
  return true;
}

bool Reader::string(string_t& value) {
  if (in_events_ && depth_ == event_depth_) {
    const std::string& key = keys_[static_cast<std::size_t>(depth_)];
    if (key == "ph")
      event_.phase = std::move(value);
    else if (key == "cat")
      event_.category = std::move(value);
    else if (key == "name")
      event_.name = std::move(value);
    else if (key == "pid")
      event_.process = std::move(value);
    else if (key == "tid")
      event_.thread = std::move(value);
    else if (key == "ts" || key == "dur")
      return number_as_text(value);
  } else if (is_argument()) {
    const std::string& key = keys_[static_cast<std::size_t>(depth_)];
    if (key == "Collective name")
      event_.collective = std::move(value);
    else if (key == "dtype")
      event_.type = std::move(value);
    else
      return number_as_text(value);
  } else if (depth_ == 2 && keys_[1] == "distributedInfo") {
    return number_as_text(value);
  } else if (depth_ == 3 && keys_[1] == "deviceProperties" && keys_[3] == "name" && out_.device.empty()) {
    out_.device = std::move(value);
  }
  return true;
}

/// An event may be two, its begin and its end on the same thread: true at the end, with the event as if it were one.
/// An end that has a name belongs to the last begin of that name.
bool Reader::join_begin_and_end() {
  if (event_.phase != "B" && event_.phase != "E") return false;
  std::vector<RawEvent>& begun = begun_[event_.process + '\n' + event_.thread];
  if (event_.phase == "B") {
    begun.push_back(std::move(event_));
    return false;
  }
  const auto last = std::find_if(begun.rbegin(), begun.rend(), [&](const RawEvent& other) {
    return event_.name.empty() || event_.name == other.name;
  });
  if (last == begun.rend()) return false;
  const double end = event_.start;
  event_ = std::move(*last);
  begun.erase(std::next(last).base());
  event_.phase = "X", event_.length = end - event_.start;
  return true;
}

void Reader::take() {
  ++out_.events;
  if ((event_.phase != "X" && !join_begin_and_end()) || event_.start < 0 || event_.length < 0) return;
  const std::string_view category = category_of(event_);
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") return take_gpu(category);
  if (category == "runtime") {
    if (event_.correlation >= 0) launches[event_.correlation] = event_.start * 1e-6;
    return;
  }
  if (category != "user_annotation") return;
  const double start = event_.start * 1e-6;
  const double end = start + event_.length * 1e-6;
  constexpr std::string_view kStep = "ProfilerStep#";
  if (event_.name.starts_with(kStep)) {
    ProfilerStep step;
    step.start = start;
    step.end = end;
    step.number = std::atoll(event_.name.c_str() + kStep.size());
    step.thread = event_.thread;
    out_.steps.push_back(std::move(step));
  } else if (!is_library(event_.name) && (event_.category == category || !is_operator(event_.name))) {
    ProfilerAnnotation annotation;
    annotation.start = start;
    annotation.end = end;
    annotation.name = std::move(event_.name);
    annotation.thread = event_.thread;
    out_.annotations.push_back(std::move(annotation));
  }
}

void Reader::take_gpu(std::string_view category) {
  using EventKind = ProfilerGpuEvent::Kind;
  ProfilerGpuEvent event;
  event.start = event_.start * 1e-6;
  event.end = event.start + event_.length * 1e-6;
  event.stream = event_.stream;
  event.name = static_cast<std::uint32_t>(fnv1a(event_.name));
  if (category == "kernel" && is_collective(event_.name)) {
    event.kind = EventKind::collective;
    if (event_.elements > 0)
      event.bytes = std::max<std::int64_t>(0, whole_part(static_cast<double>(event_.elements) * bytes_of(event_.type)));
    const std::string what =
        event_.collective.empty() ? event_.name.substr(0, event_.name.find('(')) : event_.collective;
    const auto [known, is_new] = collectives_.try_emplace(what, static_cast<std::int32_t>(out_.collectives.size()));
    event.what = known->second;
    if (is_new) out_.collectives.push_back(what);
  } else if (category == "kernel") {
    event.matrix = is_matrix_kernel(event_.name);
  } else if (category == "gpu_memcpy") {
    event.kind = event_.name.find("HtoD") != std::string::npos   ? EventKind::copy_in
                 : event_.name.find("DtoH") != std::string::npos ? EventKind::copy_out
                                                                 : EventKind::compute;
    event.bytes = std::max<std::int64_t>(0, event_.bytes);
  }
  out_.gpu.push_back(event);
  correlated_device.emplace_back(event_.correlation, event_.device);
}

/// One process may drive several GPUs, whose streams have the same numbers: keeps the events of the one that computes
/// longest. `ids` has the device of each event beside another number.
void keep_busiest_gpu(ProfilerEvents& out, const std::vector<std::pair<std::int64_t, std::int64_t>>& ids) {
  std::map<std::int64_t, double> seconds;
  for (std::size_t i = 0; i < out.gpu.size(); ++i)
    seconds[ids[i].second] +=
        out.gpu[i].kind == ProfilerGpuEvent::Kind::compute ? out.gpu[i].end - out.gpu[i].start : 0;
  out.gpus = std::max(1, static_cast<int>(seconds.size()));
  if (out.gpus == 1) return;
  const auto busiest = std::max_element(seconds.begin(), seconds.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.gpu.size(); ++i)
    if (ids[i].second == busiest->first) out.gpu[kept++] = out.gpu[i];
  out.gpu.resize(kept);
}

}  // namespace

std::vector<std::string> profiler_files(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, none))
    if (const std::string name = entry.path().string();
        entry.is_regular_file(none) && (name.ends_with(".json") || name.ends_with(".json.gz")))
      files.push_back(name);
  std::sort(files.begin(), files.end());
  if (files.empty()) throw ConfigError(fmt::format("{}: no *.json or *.json.gz in this folder", path));
  return files;
}

namespace {

/// The number behind "rank" in the name of a file, as in "rank3.json" and "trace_rank-3.json.gz"; 0 if there is none.
int rank_in_name(const std::string& name) {
  const std::string text = lower_case(name);
  for (std::size_t at = text.find("rank"); at != text.npos; at = text.find("rank", at + 1)) {
    const std::size_t digits = text.find_first_not_of("_-.= ", at + 4);
    if (digits == text.npos || std::isdigit(static_cast<unsigned char>(text[digits])) == 0) continue;
    return parse_number<int>(text.substr(digits, text.find_first_not_of("0123456789", digits) - digits)).value_or(0);
  }
  return 0;
}

}  // namespace

ProfilerEvents read_profiler_events(const std::filesystem::path& file,
                                    const std::function<void(std::int64_t)>& progress, std::int64_t max_size) {
  ProfilerEvents out;
  out.file = file.string();
  InflatedFile characters(file, progress, max_size);
  Reader reader(out, characters);
  nlohmann::json::sax_parse(InflatedCursor(&characters), InflatedCursor(), &reader);
  if (!reader.seen_events())
    throw ConfigError(
        fmt::format("{}: neither an object with \"traceEvents\" nor a list of events: not a Chrome trace", out.file));
  for (std::size_t i = 0; i < out.gpu.size(); ++i) {
    const auto launch = reader.launches.find(reader.correlated_device[i].first);
    if (launch != reader.launches.end()) out.gpu[i].launched = launch->second;
  }
  keep_busiest_gpu(out, reader.correlated_device);
  if (!reader.has_rank()) out.rank = rank_in_name(file.filename().string());
  if (out.gpu.empty())
    throw ConfigError(
        fmt::format("{}: no events of a GPU among {}: record with ProfilerActivity.CUDA", out.file, out.events));
  const auto earlier = [](const ProfilerSpan& a, const ProfilerSpan& b) { return a.start < b.start; };
  std::stable_sort(out.steps.begin(), out.steps.end(), earlier);
  std::stable_sort(out.annotations.begin(), out.annotations.end(), earlier);
  std::stable_sort(out.gpu.begin(), out.gpu.end(), earlier);
  if (out.steps.empty() ||
      std::none_of(out.gpu.begin(), out.gpu.end(), [](const ProfilerGpuEvent& event) { return event.launched >= 0; }))
    find_steps(out);
  return out;
}

}  // namespace ganymede::traces
