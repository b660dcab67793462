#include "studies/link_report.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "common/json_value.hpp"
#include "platforms/measured_collective.hpp"
#include "report/table.hpp"

namespace ganymede::studies {
namespace {

/// The log as a model, with what its links give for each size.
platforms::MeasuredCollective curve_of(const LinkReport& of) {
  platforms::MeasuredCollective curve;
  for (const calibration::FittedSample& sample : of.fit.samples)
    curve.sizes.push_back({static_cast<double>(sample.measured.bytes), sample.measured.time, sample.predicted});
  curve.instance = of.instance, curve.nodes = of.nodes, curve.gpus_per_node = of.gpus_per_node;
  curve.collective = of.collective, curve.scheme = of.scheme;
  curve.stated_off = of.stated_off;
  curve.compare_shapes();
  return curve;
}

/// The errors of the links alone, over the sizes that the curve's errors are of.
std::vector<calibration::RangeError> errors_of_links(const calibration::LinkFit& fit,
                                                     std::vector<calibration::FittedSample> predicted) {
  for (std::size_t i = 0; i < predicted.size(); ++i) predicted[i].predicted = fit.samples[i].predicted;
  return errors_of(predicted);
}

/// The samples as the curve predicts each of them from all others; the smallest and the largest are the curve's ends.
std::vector<calibration::FittedSample> left_out(const platforms::MeasuredCollective& curve,
                                                std::vector<calibration::FittedSample> samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    samples[i].fitted = i == 0 || i + 1 == samples.size();
    samples[i].predicted = samples[i].fitted ? samples[i].measured.time : curve.left_out(i);
  }
  return samples;
}

OrderedJson overlay_of(const LinkReport& of, const std::vector<calibration::FittedSample>& predicted) {
  const std::string source = fmt::format(
      "nccl-tests {}, {}{} ranks on {} x {}", std::filesystem::path(of.log).filename().string(),
      of.version.empty() ? "" : "NCCL " + of.version + ", ", of.nodes * of.gpus_per_node, of.nodes, of.instance);
  OrderedJson values;
  if (of.fit.bandwidth_fitted) values["bandwidth"] = fmt::format("{:.9g}GB/s", of.fit.bandwidth.si / 1e9);
  values["latency"] = fmt::format("{:.9g}us", of.fit.latency.si * 1e6);
  OrderedJson patch;
  const std::string_view name = of.link;
  if (name == "gpu_links/staging") {
    values["source"] = source;
    patch["gpu_links"] = {{"label", "measured"}, {"staging", values}};
  } else {
    values["label"] = "measured";
    values["source"] = source;
    if (name == "nic") values["per_flow"] = values["tcp"] = nullptr;
    patch[of.link] = values;
  }
  OrderedJson rows = OrderedJson::array(), errors = OrderedJson::array();
  for (std::size_t i = 0; i < predicted.size(); ++i)
    rows.push_back({{"bytes", predicted[i].measured.bytes},
                    {"measured_s", predicted[i].measured.time.si},
                    {"predicted_s", predicted[i].predicted.si},
                    {"links_s", of.fit.samples[i].predicted.si},
                    {"line_s", predicted[i].line.si},
                    {"fitted", predicted[i].fitted}});
  const std::vector<calibration::RangeError> of_curve = errors_of(predicted),
                                             of_links = errors_of_links(of.fit, predicted);
  for (std::size_t i = 0; i < of_curve.size(); ++i)
    errors.push_back({{"range", of_curve[i].range},
                      {"sizes", of_curve[i].samples},
                      {"error", of_curve[i].model},
                      {"links", of_links[i].model},
                      {"line", of_curve[i].line}});
  return {{"schema", "ganymede.overlay/1"},
          {"source", source},
          {"platform", {{"instances", {{of.instance, patch}}}}},
          {"fit",
           {{"scheme", of.scheme},
            {"collective", of.collective},
            {"instance", of.instance},
            {"nodes", of.nodes},
            {"gpus_per_node", of.gpus_per_node},
            {"link", of.link},
            {"stated_off", of.stated_off},
            {"errors", errors},
            {"rows", rows},
            {"notes", of.notes}}}};
}

std::string report_of(const LinkReport& of, const std::vector<calibration::FittedSample>& predicted,
                      std::size_t width) {
  std::string out = fmt::format(
      "{} x {}, {} GPUs: the measured times are the model. Beyond them: latency and bandwidth of the {} {} and {}, so "
      "that {} {} {}\n\n",
      of.nodes, of.instance, of.nodes * of.gpus_per_node, of.link_title, to_string(of.fit.latency),
      to_string(of.fit.bandwidth), of.scheme, of.fit.meets_ends ? "meets" : "comes nearest to",
      !of.fit.bandwidth_fitted && !of.fit.latency_fitted ? "no size; latency and bandwidth are the platform's"
      : !of.fit.bandwidth_fitted                         ? "the first size; the bandwidth is the platform's"
      : of.fit.latency_fitted                            ? "the first and the last size"
                              : "the last size; the latency is the platform's, as all sizes are large");
  report::Table rows({">size", ">measured", ">by the others", ">off by", ">by links", ">straight line"});
  const auto off = [](const calibration::FittedSample& sample, Seconds is) {
    return sample.fitted ? "fitted" : fmt::format("{:+.1f} %", 100 * (is / sample.measured.time - 1));
  };
  for (std::size_t i = 0; i < predicted.size(); ++i)
    rows.add({to_string(Bytes{static_cast<double>(predicted[i].measured.bytes)}), to_string(predicted[i].measured.time),
              to_string(predicted[i].predicted), off(predicted[i], predicted[i].predicted),
              off(of.fit.samples[i], of.fit.samples[i].predicted), off(predicted[i], predicted[i].line)});
  out += rows.text(width) + "\n";
  report::Table errors({"sizes", ">left out", ">error", ">of links alone", ">of a straight line"});
  const std::vector<calibration::RangeError> of_curve = errors_of(predicted),
                                             of_links = errors_of_links(of.fit, predicted);
  for (std::size_t i = 0; i < of_curve.size(); ++i) {
    const auto percent = [](const calibration::RangeError& range, double error) {
      return range.samples > 0 ? fmt::format("{:.1f} %", 100 * error) : "";
    };
    errors.add({of_curve[i].range, std::to_string(of_curve[i].samples), percent(of_curve[i], of_curve[i].model),
                percent(of_links[i], of_links[i].model), percent(of_curve[i], of_curve[i].line)});
  }
  out += errors.text(width);
  for (const std::string& note : of.notes) out += "note: " + note + "\n";
  return out;
}

}  // namespace

ImportedLinks imported_links(const LinkReport& of, std::size_t width) {
  const auto predicted = left_out(curve_of(of), of.fit.samples);
  return {overlay_of(of, predicted).dump(2) + "\n", report_of(of, predicted, width)};
}

}  // namespace ganymede::studies
