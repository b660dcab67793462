#include "studies/study_shards.hpp"

#include <map>
#include <memory>

#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "studies/sweep_rows.hpp"

namespace ganymede::studies {

ShardedWork sharded(const Study& study, const std::string& program) {
  ShardedWork work{.command = kSweepShards, .program = program, .name = study.name, .parts = {}, .seeds = study.seeds};
  for (std::size_t i = 0; i < study.runs.size(); i += study.seeds.size())
    work.parts.push_back({*study.runs[i].part, study.runs[i].base->hash_without_seed});
  return work;
}

ShardOutcome run_study_shard(const Study& study, const std::string& program, const Shard& shard,
                             const std::filesystem::path& folder, ShardOptions options) {
  StudySimulator simulator(study);
  options.use = simulator.use();
  return run_shard(sharded(study, program), shard, folder,
                   {.work = [&](std::size_t run) { return simulator.row(run); },
                    .failed_row = [&](std::size_t run,
                                      const ChildOutcome& outcome) { return failed_row(study.runs[run], outcome); }},
                   options);
}

MergedStudy::MergedStudy(ShardFolder& folder, const ShardFolder::Remark& remark) : folder_(folder) {
  const std::size_t runs = folder.work().size();
  facts_.resize(runs);
  std::map<RunGroup, std::shared_ptr<const RunGroup>> groups;
  folder.scan(
      [&](std::size_t run, RowKind kind, std::string_view text) {
        if (kind != RowKind::result) return;
        RunFacts facts = read_facts(text);
        facts.group = groups.try_emplace(*facts.group, facts.group).first->second;
        facts_[run] = std::move(facts);
      },
      remark);
  for (std::size_t run = 0; run < runs; ++run) {
    const auto kind = folder.kind(run);
    if (!kind || *kind == RowKind::result) continue;
    ++(*kind == RowKind::endless ? outcome_.endless : outcome_.failed);
    if (!outcome_.first_reason.empty()) continue;
    const auto row = Json::parse(folder.text(run));
    outcome_.first_reason = row.at("run").get<std::string>() + ": " + row.at("reason").get<std::string>();
  }
  std::erase_if(facts_, [](const RunFacts& facts) { return !facts.group; });
}

void MergedStudy::write(const ContentSink& sink) const {
  SweepWriter writer(sink, folder_.work().name);
  const std::size_t runs = folder_.work().size();
  for (std::size_t run = 0; run < runs; ++run)
    if (folder_.kind(run) == RowKind::result) writer.add_result(read_row(folder_.text(run)).line);
  for (std::size_t run = 0; run < runs; ++run)
    if (const auto kind = folder_.kind(run); kind && *kind != RowKind::result) writer.add_failed(folder_.text(run));
  writer.finish(summarize(facts_));
}

}  // namespace ganymede::studies
