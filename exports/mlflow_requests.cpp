#include "exports/mlflow_requests.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/host_inventory.hpp"
#include "common/random.hpp"

namespace ganymede::exports {
namespace {
constexpr const char* kSchema = "ganymede.mlflow-requests/1";
/// Requests to any other path in a file are refused.
constexpr const char* kPaths[] = {"experiments/get-by-name",
                                  "experiments/create",
                                  "runs/search",
                                  "runs/create",
                                  "runs/log-batch",
                                  "runs/update",
                                  "registered-models/create",
                                  "model-versions/search",
                                  "model-versions/create"};

bool is_path(const OrderedJson& value) {
  return value.is_string() && std::find(std::begin(kPaths), std::end(kPaths), value.as_string()) != std::end(kPaths);
}

bool holds_pointers(const OrderedJson& of, const char* member) {
  if (!of.contains(member)) return true;
  if (!of[member].is_object()) return false;
  return std::all_of(of[member].begin(), of[member].end(), [](const OrderedJson& pointer) {
    return pointer.is_string() && pointer.as_string().starts_with('/');
  });
}

bool holds_strings(const OrderedJson& of, std::initializer_list<const char*> members) {
  return std::all_of(members.begin(), members.end(),
                     [&](const char* name) { return of.contains(name) && of[name].is_string(); });
}

bool is_request(const OrderedJson& line) {
  if (!line.is_object()) return false;
  if (line.contains("upload")) return holds_strings(line, {"upload", "folder", "gives"}) && line.contains("to");
  if (!line.contains("path") || !is_path(line["path"]) || !line.contains("body") || !line["body"].is_object() ||
      !holds_pointers(line, "gives"))
    return false;
  if (!line.contains("find")) return true;
  const OrderedJson& find = line["find"];
  if (!find.is_object() || !find.contains("path") || !is_path(find["path"]) || !holds_pointers(find, "gives") ||
      !find.contains("gives"))
    return false;
  if (find.contains("list") && !find["list"].is_string()) return false;
  if (find.contains("tag") && !(find["tag"].is_object() && holds_strings(find["tag"], {"key", "value"}))) return false;
  const bool query =
      find.contains("query") && find["query"].is_object() &&
      std::all_of(find["query"].begin(), find["query"].end(), [](const OrderedJson& v) { return v.is_string(); });
  return query || (find.contains("body") && find["body"].is_object());
}

/// The name of a request for people: "runs/create (run-3)".
std::string name_of(const OrderedJson& request) {
  if (request.contains("upload")) return "upload of " + request["upload"].get<std::string>();
  std::string name = request["path"].get<std::string>();
  if (request.contains("gives") && !request["gives"].empty()) name += " (" + request["gives"].begin().key() + ")";
  return name;
}

/// Returns `value` with the known ids in place of {"$id": name}, or nullopt if an id is not known.
std::optional<OrderedJson> filled(const OrderedJson& value, const std::map<std::string, std::string>& known) {
  if (value.is_object() && value.size() == 1 && value.contains("$id") && value["$id"].is_string()) {
    const auto found = known.find(value["$id"].get<std::string>());
    return found == known.end() ? std::nullopt : std::optional<OrderedJson>(found->second);
  }
  if (!value.is_structured()) return value;
  OrderedJson out = value;
  for (auto& inner : out) {
    auto with = filled(inner, known);
    if (!with) return std::nullopt;
    inner = std::move(*with);
  }
  return out;
}

/// The id at a JSON pointer of an answer. MLflow's ids are short printable words or URIs of artifacts; nullopt for
/// anything else.
std::optional<std::string> id_at(const Json& answer, const std::string& pointer) {
  const JsonPointer where(pointer);
  if (!answer.is_object() || !answer.contains(where)) return std::nullopt;
  const Json& value = answer.at(where);
  const std::string text = value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : "";
  constexpr std::size_t kMaxLength = 2000;
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (text.empty() || text.size() > kMaxLength || !printable) return std::nullopt;
  return text;
}

/// The ids of all names in `gives`, or nullopt if the answer lacks one.
std::optional<std::map<std::string, std::string>> ids_in(const Json& answer, const OrderedJson& gives) {
  std::map<std::string, std::string> ids;
  for (const auto& [name, pointer] : gives.items()) {
    auto id = id_at(answer, pointer.get<std::string>());
    if (!id) return std::nullopt;
    ids[name] = std::move(*id);
  }
  return ids;
}

bool has_tag(const Json& entry, const OrderedJson& tag) {
  if (!entry.is_object() || !entry.contains("tags") || !entry["tags"].is_array()) return false;
  return std::any_of(entry["tags"].begin(), entry["tags"].end(), [&](const Json& of) {
    return of.is_object() && of.value("key", Json()) == tag["key"].get<std::string>() &&
           of.value("value", Json()) == tag["value"].get<std::string>();
  });
}

class Sender {
 public:
  Sender(MlflowRequests& requests, MlflowClient& client) : known_(requests.known), client_(client) {}

  enum class Fate { accepted, refused, stopped };

  /// Sends one request. If it is not accepted, `trouble` says why.
  Fate send(const OrderedJson& request, std::string& trouble) {
    if (request.contains("upload")) return upload(request, trouble);
    if (request.contains("gives") && are_known(request["gives"])) return Fate::accepted;
    if (request.contains("find")) {
      const Fate fate = find(request["find"], trouble);
      if (fate != Fate::accepted || found_) return fate;
    }
    const auto body = filled(request["body"], known_);
    if (!body) return missing(trouble);
    const MlflowAnswer answer = client_.post(request["path"].get<std::string>(), *body);
    if (answer.error_code() == "RESOURCE_ALREADY_EXISTS") {
      // Somebody else has created the object since this program looked for it.
      if (request.contains("existing")) return Fate::accepted;
      if (request.contains("find")) {
        const Fate fate = find(request["find"], trouble);
        if (fate != Fate::accepted || found_) return fate;
      }
    }
    return conclude(answer, request, trouble);
  }

 private:
  bool are_known(const OrderedJson& gives) const {
    return !gives.empty() && std::all_of(gives.items().begin(), gives.items().end(),
                                         [&](const auto& entry) { return known_.contains(entry.first); });
  }

  static Fate missing(std::string& trouble) {
    trouble = "needs an id that no answer has given yet";
    return Fate::refused;
  }

  /// The fate of a request that failed: refused if the error concerns this request alone, stopped if every other
  /// request would meet it too.
  static Fate failed(const MlflowAnswer& answer, std::string& trouble) {
    trouble = answer.trouble;
    const int status = answer.status;
    const bool own = status >= 400 && status < 500 && status != 401 && status != 403 && status != 407 &&
                     status != 408 && status != 429;
    return own ? Fate::refused : Fate::stopped;
  }

  Fate conclude(const MlflowAnswer& answer, const OrderedJson& request, std::string& trouble) {
    if (!answer.accepted()) return failed(answer, trouble);
    if (!request.contains("gives")) return Fate::accepted;
    auto ids = ids_in(answer.body, request["gives"]);
    if (!ids) {
      trouble = "the answer has no id: is this an MLflow server?";
      return Fate::stopped;
    }
    known_.merge(*ids);
    return Fate::accepted;
  }

  /// Sets found_. It is no error if nothing is found.
  Fate find(const OrderedJson& find, std::string& trouble) {
    found_ = false;
    const bool by_query = find.contains("query");
    const auto with = filled(by_query ? find["query"] : find["body"], known_);
    if (!with) return missing(trouble);
    MlflowClient::Query query;
    if (by_query)
      for (const auto& [name, value] : with->items()) query.emplace_back(name, value.get<std::string>());
    const auto path = find["path"].get<std::string>();
    const MlflowAnswer answer = by_query ? client_.get(path, query) : client_.post(path, *with);
    if (answer.error_code() == "RESOURCE_DOES_NOT_EXIST") return Fate::accepted;
    if (!answer.accepted()) return failed(answer, trouble);
    if (!answer.body.is_object()) {
      trouble = "the answer is no JSON: is this an MLflow server?";
      return Fate::stopped;
    }
    if (!find.contains("list")) return take(answer.body, find["gives"]);
    const JsonPointer list(find["list"].get<std::string>());
    if (!answer.body.contains(list) || !answer.body.at(list).is_array()) return Fate::accepted;
    for (const Json& entry : answer.body.at(list))
      if (!find.contains("tag") || has_tag(entry, find["tag"])) return take(entry, find["gives"]);
    return Fate::accepted;
  }

  Fate take(const Json& entry, const OrderedJson& gives) {
    if (auto ids = ids_in(entry, gives)) {
      known_.merge(*ids);
      found_ = true;
    }
    return Fate::accepted;
  }

  Fate upload(const OrderedJson& request, std::string& trouble) {
    const auto name = request["gives"].get<std::string>();
    if (known_.contains(name)) return Fate::accepted;
    const auto to = filled(request["to"], known_);
    if (!to || !to->is_string()) return missing(trouble);
    const auto folder = to->get<std::string>() + "/" + request["folder"].get<std::string>();
    const auto file = request["upload"].get<std::string>();
    if (const std::string why = MlflowClient::cannot_upload(folder, file); !why.empty()) {
      trouble = why;
      return Fate::refused;
    }
    const MlflowAnswer answer = client_.upload(folder, file);
    if (!answer.accepted()) return failed(answer, trouble);
    known_[name] = folder;
    return Fate::accepted;
  }

  std::map<std::string, std::string>& known_;
  MlflowClient& client_;
  bool found_ = false;
};

}  // namespace

MlflowRequests MlflowRequests::made_of(std::vector<OrderedJson> requests) {
  std::string all;
  for (const OrderedJson& request : requests) all += request.dump() + "\n";
  return {fmt::format("{:016x}", fnv1a(all)), {}, std::move(requests)};
}

MlflowRequests MlflowRequests::read(const std::filesystem::path& file) {
  std::istringstream lines(read_file(file));
  MlflowRequests out;
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const OrderedJson json = OrderedJson::parse_or_null(line);
    const bool head = number == 1;
    if (head && json.is_object() && json.value("schema", OrderedJson()) == kSchema && holds_strings(json, {"export"}) &&
        json.contains("known") && json["known"].is_object()) {
      out.fingerprint = json["export"].get<std::string>();
      for (const auto& [name, id] : json["known"].items())
        if (id.is_string()) out.known[name] = id.get<std::string>();
      continue;
    }
    if (head || !is_request(json))
      throw ConfigError(fmt::format("{}: line {}: found no {}, expected what export mlflow wrote", file.string(),
                                    number, head ? std::string("head with schema ") + kSchema : "request to MLflow"));
    out.open.push_back(json);
  }
  if (number == 0) throw ConfigError(fmt::format("{}: is empty, expected what export mlflow wrote", file.string()));
  return out;
}

void MlflowRequests::write(const std::filesystem::path& file) const {
  const OrderedJson head = {{"schema", kSchema}, {"export", fingerprint}, {"known", known}};
  std::string text = head.dump() + "\n";
  for (const OrderedJson& request : open) text += request.dump() + "\n";
  write_file(file, text);
}

std::vector<std::string> send(MlflowRequests& requests, MlflowClient& client,
                              const std::function<void(std::size_t done)>& progress) {
  std::vector<std::string> troubles;
  std::vector<OrderedJson> kept;
  Sender sender(requests, client);
  bool stopped = false;
  for (std::size_t i = 0; i < requests.open.size(); ++i) {
    const OrderedJson& request = requests.open[i];
    std::string trouble;
    const auto fate = stopped ? Sender::Fate::stopped : sender.send(request, trouble);
    if (fate != Sender::Fate::accepted) kept.push_back(request);
    if (!trouble.empty()) troubles.push_back(name_of(request) + ": " + trouble);
    stopped = stopped || fate == Sender::Fate::stopped;
    if (progress && !stopped) progress(i + 1);
  }
  requests.open = std::move(kept);
  return troubles;
}

}  // namespace ganymede::exports
