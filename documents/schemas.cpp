#include "documents/schemas.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "documents/cluster_result.hpp"
#include "documents/difference.hpp"
#include "documents/forecast.hpp"
#include "documents/forms.hpp"
#include "documents/machine_checks.hpp"
#include "documents/own_or_rent.hpp"
#include "documents/plan.hpp"
#include "documents/recipe.hpp"
#include "documents/rehearsal.hpp"
#include "documents/result.hpp"
#include "documents/service_result.hpp"
#include "documents/step_trace.hpp"
#include "documents/validation_result.hpp"

namespace ganymede::documents {
namespace {
class Bundle {
 public:
  Bundle(std::span<const EmbeddedText> common, const ListNames& names) : names_(names) {
    for (const EmbeddedText& file : common) files_.emplace_back(file.name, OrderedJson::parse(file.text));
  }

  std::string text_of(std::string_view schema) {
    const OrderedJson source = OrderedJson::parse(schema);
    OrderedJson out = resolved(source, "");
    OrderedJson definitions = OrderedJson::object();
    for (const auto& [file, content] : files_)
      for (const auto& [name, ignored] : content.at("definitions").items())
        if (const auto taken = taken_.find({file, name}); taken != taken_.end()) add(definitions, name, taken->second);
    if (out.contains("definitions"))
      for (const auto& [name, definition] : out.at("definitions").items()) add(definitions, name, definition);
    if (!definitions.empty()) out["definitions"] = definitions;
    return out.dump(1) + "\n";
  }

 private:
  using Name = std::pair<std::string, std::string>;  ///< file, definition

  static void add(OrderedJson& definitions, const std::string& name, const OrderedJson& definition) {
    if (definitions.contains(name)) throw Failure(fmt::format("schemas: \"{}\" is defined twice", name));
    definitions[name] = definition;
  }

  /// Returns `value` with its references made local. It comes from the common file `file`; "": from the schema itself.
  OrderedJson resolved(const OrderedJson& value, const std::string& file) {
    if (value.is_array()) {
      OrderedJson out = OrderedJson::array();
      for (const OrderedJson& item : value) out.push_back(resolved(item, file));
      return out;
    }
    if (!value.is_object()) return value;
    OrderedJson out = OrderedJson::object();
    for (const auto& [key, member] : value.items()) {
      if (key == "$ref" && member.is_string())
        out[key] = local_reference(member.get<std::string>(), file);
      else if (key == "x-list")
        out["enum"] = names_(member.get<std::string>());
      else
        out[key] = resolved(member, file);
    }
    return out;
  }

  std::string local_reference(const std::string& reference, const std::string& from) {
    const std::size_t hash = reference.find('#');
    const std::string path = reference.substr(0, hash);
    const std::string name = reference.substr(reference.rfind('/') + 1);
    const std::size_t begin = path.rfind('/') + 1;  // 0 where there is no '/'
    const std::string file = path.empty() ? from : path.substr(begin, path.rfind('.') - begin);
    if (!file.empty()) take({file, name});
    return "#/definitions/" + name;
  }

  void take(const Name& wanted) {
    if (!taken_.try_emplace(wanted).second) return;
    for (const auto& [file, content] : files_)
      if (file == wanted.first && content.at("definitions").contains(wanted.second)) {
        OrderedJson definition = resolved(content.at("definitions").at(wanted.second), file);
        taken_[wanted] = std::move(definition);
        return;
      }
    throw Failure(fmt::format("schemas: there is no definition \"{}\" in common/{}.json", wanted.second, wanted.first));
  }

  const ListNames& names_;
  std::vector<std::pair<std::string, OrderedJson>> files_;
  std::map<Name, OrderedJson> taken_;
};

}  // namespace

std::string bundled_schema(std::string_view schema, std::span<const EmbeddedText> common, const ListNames& names) {
  return Bundle(common, names).text_of(schema);
}

namespace {

template <class Document>
constexpr DescribedDocument row(std::string_view name, std::string_view title, std::string_view says,
                                bool strict = true) {
  return {name, title, says, strict, [](const DescribedDocument& document) {
            return schema_of(described(Document{}), document.title, document.says, document.strict);
          }};
}

constexpr std::array kDocuments = {
    row<ClusterResult>("cluster-result", kClusterResultSchema,
                       "the life of a cluster: ganymede simulate --format json"),
    row<Difference>("diff", kDifferenceSchema, "how two results or two plans differ: ganymede diff --format json"),
    row<Fits>("fits", kFitsSchema, "which GPUs hold a training: ganymede fits --format json"),
    row<Forecast>("forecast", kForecastSchema, "a run beside its plan: ganymede watch --format json"),
    row<LinkCheck>("link-check", kLinkCheckSchema,
                   "whether collectives are normal: ganymede check nccl-log --format json"),
    row<OwnOrRent>("own-or-rent", kOwnOrRentSchema,
                   "when buying is cheaper than renting: ganymede compare-own --format json"),
    row<PaidBill>("paid-bill", kPaidBillSchema, "what was paid beside a plan: ganymede watch --bill --format json"),
    row<Plan>("plan", kPlanSchema, "what to rent for a target: ganymede plan --format json"),
    row<Recipe>("recipe", kRecipeSchema, "a training as its authors run it: --recipe of plan and simulate"),
    row<Rehearsal>("rehearsal", kRehearsalSchema,
                   "a life that was predicted and played: ganymede rehearse --life --format json",
                   /*strict=*/false),  // the lives in it may be of another version
    row<Result>("result", kResultSchema, "what a run comes to: ganymede simulate --format json"),
    row<ServicePlan>("service-plan", kServicePlanSchema,
                     "what to rent for a service: ganymede plan --serve --format json"),
    row<ServiceResult>("service-result", kServiceResultSchema,
                       "what a service of a generator comes to: ganymede simulate SERVICE.json --format json"),
    row<StepTrace>("step-trace", kStepTraceSchema, "what a real training did, step by step, on one device"),
    row<ValidationResult>("validation-result", kValidationSchema,
                          "predictions beside published measurements: ganymede validate --format json",
                          /*strict=*/false),
    row<Why>("why", "ganymede.why/1", "what a plan's choice hangs on: ganymede why --format json"),
    row<WhySlow>("why-slow", kWhySlowSchema, "why several GPUs are slow: ganymede why-slow --format json"),
};

}  // namespace

std::span<const DescribedDocument> described_documents() { return kDocuments; }

}  // namespace ganymede::documents
