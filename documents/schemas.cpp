#include "documents/schemas.hpp"

#include <array>

#include "common/json_value.hpp"
#include "documents/cluster_result.hpp"
#include "documents/fits.hpp"
#include "documents/forms.hpp"
#include "documents/link_check.hpp"
#include "documents/plan.hpp"
#include "documents/recipe.hpp"
#include "documents/rehearsal.hpp"
#include "documents/result.hpp"
#include "documents/service_plan.hpp"
#include "documents/service_result.hpp"
#include "documents/why_slow.hpp"

namespace ganymede::documents {
namespace {

template <class Document>
OrderedJson schema(std::string_view title, std::string_view says, bool strict = true) {
  return schema_of(described(Document{}), title, says, strict);
}

constexpr std::array kDocuments = {
    DescribedDocument{"cluster-result",
                      [] {
                        return schema<ClusterResult>(kClusterResultSchema,
                                                     "the life of a cluster: ganymede simulate --format json");
                      }},
    DescribedDocument{
        "fits", [] { return schema<Fits>(kFitsSchema, "which GPUs hold a training: ganymede fits --format json"); }},
    DescribedDocument{"link-check",
                      [] {
                        return schema<LinkCheck>(
                            kLinkCheckSchema, "whether collectives are normal: ganymede check nccl-log --format json");
                      }},
    DescribedDocument{
        "plan", [] { return schema<Plan>(kPlanSchema, "what to rent for a target: ganymede plan --format json"); }},
    DescribedDocument{"recipe",
                      [] {
                        return schema<Recipe>(kRecipeSchema,
                                              "a training as its authors run it: --recipe of plan and simulate");
                      }},
    DescribedDocument{"rehearsal",
                      [] {
                        return schema<Rehearsal>(kRehearsalSchema,
                                                 "a life that was predicted and played: ganymede rehearse --life "
                                                 "--format json",
                                                 /*strict=*/false);  // the lives in it may be of another version
                      }},
    DescribedDocument{
        "result", [] { return schema<Result>(kResultSchema, "what a run comes to: ganymede simulate --format json"); }},
    DescribedDocument{"service-plan",
                      [] {
                        return schema<ServicePlan>(kServicePlanSchema,
                                                   "what to rent for a service: ganymede plan --serve --format json");
                      }},
    DescribedDocument{"service-result",
                      [] {
                        return schema<ServiceResult>(
                            kServiceResultSchema,
                            "what a service of a generator comes to: ganymede simulate SERVICE.json --format json");
                      }},
    DescribedDocument{
        "why",
        [] { return schema<Why>("ganymede.why/1", "what a plan's choice hangs on: ganymede why --format json"); }},
    DescribedDocument{
        "why-slow",
        [] { return schema<WhySlow>(kWhySlowSchema, "why several GPUs are slow: ganymede why-slow --format json"); }},
};

}  // namespace

std::span<const DescribedDocument> described_documents() { return kDocuments; }

}  // namespace ganymede::documents
