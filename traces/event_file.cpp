// Event files of TensorBoard: records of TensorFlow (TFRecord) that hold Event messages of protocol buffers. A record
// is its length (64 bits, little-endian), a masked CRC-32C of the length, the bytes, and a masked CRC-32C of the bytes.
// https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details describes it; the fields are those
// of tensorflow/core/util/event.proto, framework/summary.proto and framework/tensor.proto.

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "common/errors.hpp"
#include "common/plain_text.hpp"
#include "common/text.hpp"
#include "traces/quality_log.hpp"

namespace ganymede::traces {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kHeader = 12, kFooter = 4;

std::uint32_t masked_crc(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      out[i] = i;
      for (int bit = 0; bit < 8; ++bit) out[i] = (out[i] >> 1) ^ (out[i] & 1 ? 0x82f63b78U : 0);
    }
    return out;
  }();
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// A field of a message: a number (varint, 32 or 64 bits), or bytes.
struct Field {
  std::uint32_t id = 0;
  std::uint64_t number = 0;
  std::string_view bytes;
};

/// Takes fields off the front of a message.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}

  /// The next field; nothing at the end. Throws ConfigError for a message that is cut short.
  std::optional<Field> next() {
    if (left_.empty()) return std::nullopt;
    const std::uint64_t key = varint();
    Field field{static_cast<std::uint32_t>(key >> 3), 0, {}};
    switch (key & 7) {
      case 0:
        field.number = varint();
        break;
      case 1:
        field.number = number_at<std::uint64_t>(take(8), 0);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.number = number_at<std::uint32_t>(take(4), 0);
        break;
      default:
        throw ConfigError("a record is not a message of protocol buffers");
    }
    return field;
  }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > left_.size()) throw ConfigError("a record ends within a field");
    const std::string_view out = left_.substr(0, count);
    left_.remove_prefix(count);
    return out;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw ConfigError("a record has a number of more than 64 bits");
  }

  std::string_view left_;
};

double float_of(std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits)); }

/// A tensor of one float, as newer writers store scalars: raw bytes (field 4) or a list of floats (field 5).
std::optional<double> read_tensor(std::string_view message) {
  Fields fields(message);
  while (const auto field = fields.next()) {
    if (field->id == 4 && field->bytes.size() == 4) return number_at<float>(field->bytes, 0);
    if (field->id == 4 && field->bytes.size() == 8) return number_at<double>(field->bytes, 0);
    if (field->id != 5) continue;
    return float_of(field->bytes.size() >= 4 ? number_at<std::uint32_t>(field->bytes, 0) : field->number);
  }
  return std::nullopt;
}

struct Scalar {
  std::string tag;
  std::optional<double> value;
};

Scalar read_summary_value(std::string_view message) {
  Scalar out;
  Fields fields(message);
  while (const auto field = fields.next()) {
    if (field->id == 1) out.tag = field->bytes;
    if (field->id == 2) out.value = float_of(field->number);
    if (field->id == 8) out.value = read_tensor(field->bytes);
  }
  return out;
}

struct Event {
  double unix_s = 0;
  std::int64_t step = 0;
  std::vector<Scalar> scalars;
};

Event read_event(std::string_view message) {
  Event out;
  Fields fields(message);
  while (const auto field = fields.next()) {
    if (field->id == 1) out.unix_s = std::bit_cast<double>(field->number);
    if (field->id == 2) out.step = static_cast<std::int64_t>(field->number);
    if (field->id != 5) continue;
    Fields values(field->bytes);
    while (const auto value = values.next())
      if (value->id == 1) out.scalars.push_back(read_summary_value(value->bytes));
  }
  return out;
}

bool has_fid(const std::string& tag) { return lower_case(tag).find("fid") != std::string::npos; }

/// The records whose bytes are whole. A last record that is cut short may be in writing.
std::vector<std::string_view> read_records(std::string_view bytes, const std::string& file) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at + kHeader <= bytes.size();) {
    const auto length = number_at<std::uint64_t>(bytes, at);
    if (number_at<std::uint32_t>(bytes, at + 8) != masked_crc(bytes.substr(at, 8)))
      throw ConfigError(fmt::format("{}: byte {}: the checksum of a record's length does not fit", file, at));
    if (length > bytes.size() - at - kHeader || bytes.size() - at - kHeader - length < kFooter) break;
    const std::string_view record = bytes.substr(at + kHeader, length);
    if (number_at<std::uint32_t>(bytes, at + kHeader + length) != masked_crc(record))
      throw ConfigError(fmt::format("{}: byte {}: the checksum of a record does not fit", file, at));
    out.push_back(record);
    at += kHeader + length + kFooter;
  }
  return out;
}

std::vector<Event> read_events(std::string_view bytes, const std::string& file) {
  std::vector<Event> events;
  for (const std::string_view record : read_records(bytes, file)) try {
      events.push_back(read_event(record));
    } catch (const ConfigError& error) {
      throw ConfigError(fmt::format("{}: record {}: {}", file, events.size() + 1, error.what()));
    }
  return events;
}

/// The tag that was asked for, or the only one of FID.
std::string chosen_tag(const std::set<std::string>& tags, const std::string& wanted, const std::string& file) {
  const std::vector<std::string> all(tags.begin(), tags.end());
  if (!wanted.empty()) {
    if (tags.contains(wanted)) return wanted;
    throw ConfigError(fmt::format("{}: found no scalar \"{}\", expected {}{}", file, wanted,
                                  all.empty() ? "one that it has; it has none" : list_of(all),
                                  did_you_mean(wanted, all)));
  }
  std::vector<std::string> fids;
  for (const std::string& tag : all)
    if (has_fid(tag)) fids.push_back(tag);
  if (fids.size() == 1) return fids[0];
  throw ConfigError(fids.empty() ? fmt::format("{}: found no scalar with \"fid\" in its name{}", file,
                                               all.empty() ? "" : ", only " + list_of(all))
                                 : fmt::format("{}: found {} scalars of FID, expected --tag with {}", file, fids.size(),
                                               list_of(fids)));
}

}  // namespace

bool is_event_file(const std::string& bytes) {
  return bytes.size() >= kHeader &&
         number_at<std::uint32_t>(bytes, 8) == masked_crc(std::string_view(bytes).substr(0, 8));
}

std::vector<std::pair<std::int64_t, double>> event_times(const std::string& file, const std::string& bytes) {
  std::vector<std::pair<std::int64_t, double>> times;
  for (const Event& event : read_events(bytes, file))
    if (!event.scalars.empty() && event.step >= 0 && std::isfinite(event.unix_s))
      times.emplace_back(event.step, event.unix_s);
  return times;
}

QualityLog read_event_file(const std::filesystem::path& file, const std::string& bytes,
                           const QualityLogOptions& options) {
  QualityLog log;
  log.run = file.filename().string();
  const std::vector<Event> events = read_events(bytes, file.string());
  std::set<std::string> tags;
  for (const Event& event : events)
    for (const Scalar& scalar : event.scalars)
      if (scalar.value) tags.insert(scalar.tag);
  const std::string tag = chosen_tag(tags, options.tag, file.string());
  for (const Event& event : events)
    for (const Scalar& scalar : event.scalars) {
      if (scalar.tag != tag || !scalar.value || event.step == 0) continue;
      const std::string where = fmt::format("{}: {} at step {}", file.string(), tag, event.step);
      if (event.step < 0 || !std::isfinite(*scalar.value) || *scalar.value <= 0)
        throw ConfigError(fmt::format("{}: found {}, expected a number above zero", where, *scalar.value));
      add_point(log, {static_cast<double>(event.step) * images_of_step(where, options), *scalar.value});
    }
  if (log.points.empty()) throw ConfigError(fmt::format("{}: {}: found no point after step 0", file.string(), tag));
  return log;
}

}  // namespace ganymede::traces
