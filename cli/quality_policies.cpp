// ganymede quality policies: early stopping, restarts and successive halving, with their bill in images.

#include <fmt/format.h>

#include "calibration/quality/policies.hpp"
#include "cli/command.hpp"
#include "cli/names.hpp"
#include "cli/quality_logs.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "report/table.hpp"

namespace ganymede::cli {
namespace {

using PoliciesJson = OrderedJson;

struct QualityPoliciesOptions {
  std::string curve, model;
  double usd_per_million = 0;
  calibration::PolicyQuestion question;
  traces::QualityLog given;
};

PoliciesJson policies_json(const QualityPoliciesOptions& options, const calibration::PolicyComparison& all) {
  PoliciesJson out = {{"schema", "ganymede.quality-policies/1"}, {"fid", options.question.fid}};
  out["horizon_images"] = all.horizon;
  out["check_images"] = options.question.check;
  out["seeds"] = options.question.seeds;
  out["policies"] = PoliciesJson::array();
  for (const calibration::PolicyOutlook& one : all.policies) {
    PoliciesJson row = {{"name", one.name}, {"probability", one.probability}, {"images", nullptr}};
    if (one.images.median > 0)
      row["images"] = {{"median", one.images.median}, {"interval", {one.images.low, one.images.high}}};
    row["mean_images"] = one.mean_images;
    row["mean_trainings"] = one.mean_trainings;
    row["images_a_success"] =
        one.probability > 0 ? PoliciesJson(one.mean_images / one.probability) : PoliciesJson(nullptr);
    row["usd"] = options.usd_per_million > 0 ? PoliciesJson(one.mean_images * 1e-6 * options.usd_per_million)
                                             : PoliciesJson(nullptr);
    out["policies"].push_back(std::move(row));
  }
  out["notes"] = all.notes;
  return out;
}

std::string policies_text(const QualityPoliciesOptions& options, const calibration::PolicyComparison& all) {
  report::Table table({"policy", "reaches it", "images if so", "90 % of these", "trainings", "mean images",
                       "images a success", "mean USD"});
  std::string summaries;
  for (const calibration::PolicyOutlook& one : all.policies) {
    const bool known = one.images.median > 0;
    table.add(
        {one.name, fmt::format("{:.0f} %", 100 * one.probability),
         known ? fmt::format("{:.3g}", one.images.median) : "-",
         known ? fmt::format("{:.3g} to {:.3g}", one.images.low, one.images.high) : "-",
         fmt::format("{:.2f}", one.mean_trainings), fmt::format("{:.3g}", one.mean_images),
         one.probability > 0 ? fmt::format("{:.3g}", one.mean_images / one.probability) : "-",
         options.usd_per_million > 0 ? fmt::format("{:.2f}", one.mean_images * 1e-6 * options.usd_per_million) : "-"});
    summaries += fmt::format("{}: {}\n", one.name, one.summary);
  }
  std::string out = table.text() + summaries;
  out += fmt::format("a training has at most {:.3g} images, and an evaluation every {:.3g}\n", all.horizon,
                     options.question.check);
  for (const std::string& note : all.notes) out += note + "\n";
  return out;
}

void run_quality_policies(const QualityPoliciesOptions& options, Shared& shared) {
  check_output(shared);
  const calibration::QualityModel model = calibration::load_quality_model(options.curve);
  QualityPoliciesOptions asked = options;
  add_facts_of_model(options.model, asked.given);
  asked.question.kind = kind_of(asked.given);
  const calibration::PolicyComparison all = calibration::compare_quality_policies(model, asked.question);
  if (all.policies.empty())
    throw Infeasible(fmt::format("hardly any training of this kind gets to an FID of {:g}", asked.question.fid));
  emit(shared, shared.format == "json" ? policies_json(asked, all).dump(2) + "\n" : policies_text(asked, all));
}

void declare_quality_policies(Parser command, Shared& shared) {
  constexpr int kMostSeeds = 64;
  auto options = std::make_shared<QualityPoliciesOptions>();
  command.add_option("--fid", options->question.fid, "the FID to reach").required().check(number_between(1e-3, 1e6));
  command
      .add_option("--images", options->question.horizon,
                  "most real images of one training; else those within which 95 % of those that get there do")
      .check(number_between(1e5, 1e15));
  command.add_option("--quality-every", options->question.check, "images from one evaluation to the next")
      .capture_default_str()
      .check(number_between(1e3, 1e12));
  command.add_option("--seeds", options->question.seeds, "most trainings, or those that halving begins with")
      .capture_default_str()
      .check(integer_between(1, kMostSeeds));
  command.add_option("--usd-per-million", options->usd_per_million, "dollars that a million images cost, for the bill")
      .check(positive_number());
  command.add_option("--curve", options->curve, "a model that `quality fit` wrote; else the one of the program")
      .check(suggest("@files"));
  command.add_option("--model", options->model, "a model of this program, for its networks and loss").check(not_empty);
  add_quality_facts(command, options->given);
  add_format(command, shared, {"table", "json"});
  add_output(command, shared);
  command.callback([options, &shared] { run_quality_policies(*options, shared); });
}

}  // namespace

Command quality_policies_command() {
  return {.name = "policies",
          .summary = "early stopping, restarts and successive halving: the chance of an FID and the bill",
          .examples =
              "  ganymede quality policies --fid 60 --model dcgan-64 --dataset CIFAR10 --reference 'test 10000'\n"
              "  ganymede quality policies --fid 10 --backbone big_resnet --seeds 8 --usd-per-million 0.5\n",
          .about =
              "Draws trainings of the kind and lets each policy end, repeat or choose among them. All images count,\n"
              "those of trainings that were given up too.",
          .declare = declare_quality_policies};
}

}  // namespace ganymede::cli
