#include "documents/schemas.hpp"

#include <array>

#include "documents/cluster_result.hpp"
#include "documents/forecast.hpp"
#include "documents/forms.hpp"
#include "documents/machine_checks.hpp"
#include "documents/own_or_rent.hpp"
#include "documents/paid_bill.hpp"
#include "documents/plan.hpp"
#include "documents/recipe.hpp"
#include "documents/rehearsal.hpp"
#include "documents/result.hpp"
#include "documents/service_plan.hpp"
#include "documents/service_result.hpp"
#include "documents/step_trace.hpp"
#include "documents/validation_result.hpp"

namespace ganymede::documents {
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
