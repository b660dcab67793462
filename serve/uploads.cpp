#include "serve/uploads.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/json.hpp"
#include "common/json_value.hpp"

namespace ganymede::serve {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUploadSchema = "ganymede.serve-upload/1";

const std::vector<std::string>& upload_kinds() {
  static const std::vector<std::string> names = {"trace", "platform"};
  return names;
}

/// The name as it is shown: without control characters, and at most kMaxName bytes. Throws ConfigError for a text that
/// is not UTF-8.
std::string shown_name(std::string name) {
  try {
    (void)Json(name).dump();
  } catch (const JsonError&) {
    throw ConfigError("name: expected UTF-8");
  }
  if (name.size() > UploadStore::kMaxName) {
    std::size_t end = UploadStore::kMaxName;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;  // not within a character
    name.resize(end);
  }
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return name.empty() ? "file" : name;
}

std::shared_ptr<const Upload> checked_upload(int id, const std::string& kind, const std::string& name,
                                             std::string text) {
  auto upload = std::make_shared<Upload>();
  upload->id = id;
  upload->name = shown_name(name);
  const auto& kinds = upload_kinds();
  const JsonNode asked = JsonNode::wrap(Json(kind), "upload: kind", "");
  upload->kind = asked.as_choice(kinds) == "trace" ? UploadKind::trace : UploadKind::platform;
  const JsonNode content = JsonNode::parse(text, upload->name);
  if (upload->kind == UploadKind::trace)
    upload->trace = std::make_unique<traces::StepTrace>(traces::read_step_trace(content));
  else
    upload->platform = std::make_unique<platforms::Platform>(platforms::read_platform(content));
  upload->text = std::move(text);
  return upload;
}

}  // namespace

std::string Upload::key() const { return fmt::format("upload:{}", id); }
std::string Upload::file() const {
  return fmt::format("{}-{}.json", kind == UploadKind::trace ? "trace" : "platform", id);
}

UploadStore::UploadStore(fs::path folder, std::vector<std::string>& remarks) : folder_(std::move(folder)) {
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error)) {
    const std::string stem = entry->path().stem().string();
    int id = 0;
    const auto [rest, wrong] = std::from_chars(stem.data(), stem.data() + stem.size(), id);
    if (wrong != std::errc{} || rest != stem.data() + stem.size() || id <= 0 || id > 999'999 ||
        file_of(id) != entry->path())
      continue;
    last_ = std::max(last_, id);
    try {
      JsonObject in(JsonNode::load(entry->path()));
      check_schema(in, kUploadSchema);
      const std::string kind = in.required("kind").as_string(), name = in.required("name").as_string();
      uploads_[id] = checked_upload(id, kind, name, in.required("content").as_string());
      in.finish();
    } catch (const std::exception& what) {
      uploads_.erase(id);
      remarks.push_back(fmt::format("upload {} is left out: {}", id, what.what()));
    }
  }
}

fs::path UploadStore::file_of(int id) const { return folder_ / fmt::format("{}.json", id); }

int UploadStore::add(const std::string& kind, const std::string& name, std::string text) {
  if (text.size() > kMaxBytes)
    throw ConfigError(fmt::format("found {} bytes, expected at most {}", text.size(), kMaxBytes));
  const std::lock_guard lock(mutex_);
  // A document of small values takes many times its text while it is read, in the heap of whichever thread got it.
  const struct GivesBack {
    ~GivesBack() { ::malloc_trim(0); }
  } gives_back;
  if (uploads_.size() >= kMaxFiles)
    throw ConfigError(fmt::format("there are {} files already, as many as may be: forget one first", kMaxFiles));
  const auto upload = checked_upload(last_ + 1, kind, name, std::move(text));
  const OrderedJson record = {
      {"schema", kUploadSchema}, {"kind", kind}, {"name", upload->name}, {"content", upload->text}};
  write_file(file_of(upload->id), record.dump(1) + "\n");
  uploads_[++last_] = upload;
  return upload->id;
}

void UploadStore::forget(int id) {
  const std::lock_guard lock(mutex_);
  if (!uploads_.contains(id)) throw NoSuchUpload(fmt::format("there is no upload {}", id));
  std::error_code error;
  if (!fs::remove(file_of(id), error) && error)
    throw Failure(fmt::format("{}: {}", file_of(id).string(), error.message()));
  uploads_.erase(id);
}

Uploads UploadStore::all() const {
  const std::lock_guard lock(mutex_);
  Uploads all;
  for (const auto& [id, upload] : uploads_) all.push_back(upload);
  return all;
}

}  // namespace ganymede::serve
