// ganymede import: what other programs measured, as files that this one reads.

#include "cli/import.hpp"

#include <fmt/format.h>

#include <memory>

#include "calibration/imported_traces.hpp"
#include "calibration/kernel_workload.hpp"
#include "cli/progress.hpp"
#include "cli/shared_options.hpp"
#include "common/errors.hpp"
#include "common/file.hpp"
#include "common/units.hpp"
#include "platforms/catalog.hpp"
#include "sim/cluster/import_jobs.hpp"
#include "sim/engine/simgrid_import.hpp"
#include "traces/layer_list.hpp"
#include "traces/recorded.hpp"

namespace ganymede::cli {

void import_collective_log(const LinkImport& options, const Shared& shared) {
  check_output(shared);
  for (const std::string& input : {options.log, options.catalog, options.overlay}) keep_input(shared, input);
  auto waiting = show_elapsed(shared, "fitting");
  const studies::ImportedLinks links = studies::import_links(options, remark_width());
  waiting.reset();
  remark(shared, links.report);
  emit(shared, links.overlay);
}

void add_logged_ranks(Parser command, int& nodes, int& gpus_per_node) {
  command.add_option("--nodes", nodes, "number of nodes; default: as the log says, else 1", integer_between(1, 65536));
  command.add_option("--gpus-per-node", gpus_per_node,
                     "GPUs used on each node; default: as the log says, else all of the instance",
                     integer_between(1, 1024));
}

namespace {

void declare_import_nccl_tests(Parser command, Shared& shared) {
  auto options = std::make_shared<LinkImport>();
  command.add_option("log", options->log, "what nccl-tests printed, or its JSON file").required();
  command
      .add_option("--catalog", options->catalog, "a provider (ganymede list providers) or a platform file",
                  suggest("@providers @files"))
      .required();
  command.add_option("--overlay", options->overlay, "overlay to apply to the platform first");
  command.add_option("--instance", options->instance, "the instance type that was measured", suggest("@instances"))
      .required();
  add_logged_ranks(command, options->nodes, options->gpus_per_node);
  command.add_option("--scheme", options->scheme, "scheme that ran; default: nccl, in the version that the log names",
                     suggest("@schemes"));
  add_output(command, shared);
  command.callback([options, &shared] { import_collective_log(*options, shared); });
}

Command import_nccl_tests_command() {
  return {.name = "nccl-tests",
          .summary = "the log of an nccl-tests run, as an overlay for a platform",
          .examples =
              "  ganymede import nccl-tests all_reduce.log --catalog aws --instance p4d.24xlarge --nodes 2 -o "
              "measured.json\n"
              "  ganymede import nccl-tests result.json --catalog lab.json --instance node --scheme nccl:2.9.9/ring\n",
          .about =
              "Fits latency and bandwidth of one kind of link (between nodes, or inside a node) to the smallest and\n"
              "the largest size of a log, text or JSON (-J). It says how far off all other sizes are, beside a\n"
              "straight line through the same two. The overlay goes to standard output or to -o, the table to\n"
              "standard error.",
          .declare = declare_import_nccl_tests};
}

// ganymede import layers: a list of layers as a workload that can be planned without running it.

struct LayerOptions {
  std::string list, catalog = "aws", gpu = "V100", precision;
  std::vector<int> batches = {16};
};

void import_layers(const LayerOptions& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.list);
  traces::LayerList list = traces::load_layer_list(options.list);
  if (!options.precision.empty()) list.precision = options.precision;
  const platforms::Gpu gpu = platforms::catalog_gpu(options.catalog, options.gpu);
  traces::StepTrace trace = traces::trace_of(list, options.batches, calibration::roofline_device(gpu, list.precision));
  const std::string how = calibration::time_by_kernels(trace, gpu);
  remark(shared, calibration::layers_text(list, trace, how, remark_width()));
  emit(shared, traces::write_step_trace(trace));
}

void declare_import_layers(Parser command, Shared& shared) {
  auto options = std::make_shared<LayerOptions>();
  command
      .add_option("list", options->list, "a ganymede.layers/1 file, or the name of one that comes with the program",
                  suggest("@layers @files"))
      .required();
  command
      .add_option("--batch", options->batches,
                  "images on a GPU in a step; several sizes make a trace with several entries")
      .delimiter(',')
      .check(integer_between(1, 1 << 24))
      .capture_default_str();
  command.add_option("--precision", options->precision, "arithmetic and activations; default: the list's, else fp32",
                     one_of({"fp32", "tf32", "bf16", "fp16"}));
  command
      .add_option("--catalog", options->catalog, "catalog whose data sheet gives the times",
                  suggest("@providers @files"))
      .capture_default_str();
  command.add_option("--gpu", options->gpu, "GPU whose data sheet gives the times", suggest("@rented-gpus"))
      .capture_default_str();
  add_output(command, shared);
  command.callback([options, &shared] { import_layers(*options, shared); });
}

Command import_layers_command() {
  return {.name = "layers",
          .summary = "a list of layers, as a workload that can be planned without running it",
          .examples =
              "  ganymede import layers stylegan2 --batch 4,8 -o stylegan2.json\n"
              "  ganymede import layers 'stylegan2?image=256' --precision fp16 --batch 8 -o stylegan2-256.json\n"
              "  ganymede plan --trace stylegan2.json --images 25000000 --deadline 200h --budget 5000USD\n"
              "  ganymede import layers model.json --batch 32 --gpu A100-40GB -o model-trace.json\n",
          .about =
              "Counts FLOPs, bytes, kernels and gradient buckets of each phase. Times are predicted from the\n"
              "kernels' shapes and a data sheet, and every result says so. Lists that come with the program: biggan,\n"
              "cyclegan, dcgan, pix2pix, resnet50, stylegan2, vae; stylegan2?image=256 is one for other images.",
          .declare = declare_import_layers};
}

// ganymede import jobs: jobs that ran on a real cluster, as the trace of a simulated one.

struct JobImport {
  std::string file, virtual_cluster;
};

void import_jobs(const JobImport& options, Shared& shared) {
  check_output(shared);
  keep_input(shared, options.file);
  const sim::ImportedJobs jobs = sim::import_jobs(read_file(options.file), options.file, options.virtual_cluster);
  for (const std::string& note : jobs.remarks) remark(shared, note + "\n");
  emit(shared, jobs.csv);
}

void declare_import_jobs(Parser command, Shared& shared) {
  auto options = std::make_shared<JobImport>();
  command
      .add_option("file", options->file, "what sacct printed, or a trace of a cluster (see above)", suggest("@files"))
      .required();
  command.add_option("--virtual-cluster", options->virtual_cluster, "only the jobs of this cluster of the trace",
                     not_empty);
  add_output(command, shared);
  command.callback([options, &shared] { import_jobs(*options, shared); });
}

Command import_jobs_command() {
  return {
      .name = "jobs",
      .summary = "jobs of Slurm's accounting or of another cluster's trace, as the jobs of a cluster",
      .examples =
          "  sacct -a -P -S 2026-11-01 -o JobID,User,Submit,ElapsedRaw,AllocTRES,Priority,State > sacct.txt\n"
          "  ganymede import jobs sacct.txt -o jobs.csv\n"
          "  ganymede import jobs gavel.csv --virtual-cluster 0e4a51 -o jobs.csv\n",
      .about =
          "Writes the CSV that \"jobs\": { \"trace\": FILE } of a ganymede.cluster/1 file names. It reads sacct "
          "(-P with any\n"
          "--delimiter of one character, --json or columns of fixed width), squeue (--json, or -o with bars), Gavel's "
          "own traces, Philly, Helios, "
          "ACME (Seren, Kalos), Alibaba's PAI of 2020 "
          "and\n"
          "2023, Pollux's workloads, other CSV with usual names of columns, the standard workload format (SWF), "
          "and workloads of "
          "Batsim. Of\n"
          "sacct it needs JobID, Submit, Elapsed (or Start and End), and AllocTRES or ReqTRES (gres/gpu=N). Steps of "
          "jobs, jobs\n"
          "without GPUs, jobs that never ran and those that cannot be read are left out, and counted.",
      .declare = declare_import_jobs};
}

// ganymede import simgrid: a platform file of SimGrid as one of this program.

struct ImportedSimGrid {
  sim::SimGridImport import;
  std::string gpu, catalog = "aws";
};

void import_simgrid(const ImportedSimGrid& options, const Shared& shared) {
  check_output(shared);
  keep_input(shared, options.import.file);
  sim::SimGridImport import = options.import;
  if (!options.gpu.empty()) import.sheet = platforms::catalog_gpu(options.catalog, options.gpu);
  const sim::ImportedPlatform made = sim::import_simgrid_platform(import);
  emit(shared, made.text);
  for (const std::string& note : made.notes) remark(shared, "note: " + note);
}

void declare_import_simgrid(Parser command, Shared& shared) {
  auto options = std::make_shared<ImportedSimGrid>();
  command.add_option("platform", options->import.file, "a platform file of SimGrid 3.32 (XML, version 4.1)").required();
  command.add_option("--zone", options->import.zone, "take the hosts of this zone or cluster alone; default: all hosts",
                     not_empty);
  command
      .add_option("--hosts", options->import.hosts,
                  "take the hosts of these names alone, separated by commas, * for any letters; default: of all, those "
                  "of the speed that most have",
                  not_empty)
      .delimiter(',');
  command.add_option("--gpus-per-node", options->import.gpus_per_node,
                     "so many hosts in a row are the GPUs of a node; default: as the file says, else 1",
                     integer_between(1, 1024));
  command
      .add_option("--gpu", options->gpu, "GPU that a host stands for; default: as the file says",
                  suggest("@rented-gpus"))
      .check(not_empty);
  command
      .add_option("--catalog", options->catalog, "catalog whose data sheet --gpu names", suggest("@providers @files"))
      .capture_default_str();
  add_output(command, shared);
  command.callback([options, &shared] { import_simgrid(*options, shared); });
}

Command import_simgrid_command() {
  return {.name = "simgrid",
          .summary = "a platform of SimGrid, as a platform file",
          .examples =
              "  ganymede import simgrid cluster.xml --gpu A100-40GB -o cluster.json\n"
              "  ganymede import simgrid grid.xml --zone nancy --gpus-per-node 4 --gpu V100 -o nancy.json\n"
              "  ganymede allreduce --catalog cluster.json --instance host --nodes 8 --scheme ring --bytes 64MiB\n",
          .about =
              "A host becomes a GPU with the host's speed. SimGrid itself finds the routes, so clusters, zones and\n"
              "shortest paths are understood. Links of one speed that meet in one switch become NICs; all else\n"
              "becomes a fabric of routes, for at most 256 hosts. GPUs of a pool are alike: of hosts of several\n"
              "speeds those of the most frequent are taken, and notes say what was left out.",
          .declare = declare_import_simgrid};
}

// ganymede import profiler: a PyTorch profiler trace as a step trace.

void run_import_profiler(const calibration::ProfilerFiles& files, const Shared& shared) {
  check_output(shared);
  for (const std::string& file : files.files) keep_input(shared, file);
  const calibration::ImportedProfile made = calibration::import_profiles(
      files, [&](std::size_t mebibytes) { return progress_bar(shared, mebibytes, "MiB read"); }, remark_width());
  remark(shared, made.report);
  emit(shared, made.trace);
}

void declare_import_profiler(Parser command, Shared& shared) {
  auto flags = std::make_shared<calibration::ProfilerFiles>();
  command
      .add_option(
          "traces", flags->files,
          "files that export_chrome_trace or tensorboard_trace_handler wrote, one for each rank, or their folder")
      .required();
  command.add_option("--batch", flags->batch, "images on a GPU in a step")
      .required()
      .check(integer_between(1, 1 << 24));
  command.add_option("--gpu", flags->gpu,
                     "the recorded GPU, as the catalog names it; needed if the trace does not name it",
                     suggest("@rented-gpus"));
  command.add_flag("--force", flags->override_gpu, "take --gpu although the trace names another GPU");
  command.add_flag("--override-gpu", flags->override_gpu, "the former name of --force").hidden();
  command.add_option("--catalog", flags->catalog, "catalog that has the GPU", suggest("@providers @files"))
      .capture_default_str();
  command.add_option("--model", flags->model, "name of the model").capture_default_str();
  command.add_option("--precision", flags->precision,
                     "precision of the recorded products; default: that of --layers, or fp32",
                     one_of({"fp32", "tf32", "bf16", "fp16"}));
  command.add_option("--parameters", flags->parameters,
                     "number of trainable parameters; needed if the trace has no all-reduce", positive_integer());
  command.add_option(
      "--layers", flags->layers,
      "list of layers: FLOPs are counted, and each layer keeps its residual against the kernel model on other GPUs",
      suggest("@layers @files"));
  command
      .add_option_callback(
          "--max-size",
          [flags](const std::string& text) {
            try {
              flags->max_size = static_cast<std::int64_t>(parse_quantity<Bytes>(text).si);
            } catch (const std::invalid_argument& error) {
              throw ConfigError(fmt::format("--max-size {}: {}", text, error.what()));
            }
          },
          "bytes that a file may hold once it is inflated, such as 8GiB; else 64 MiB and 100 times its size")
      .type_name("SIZE");
  add_output(command, shared);
  command.callback([flags, &shared] { run_import_profiler(*flags, shared); });
}

Command import_profiler_command() {
  return {
      .name = "profiler",
      .summary = "a PyTorch profiler trace, as a step trace",
      .examples =
          "  ganymede import profiler rank0.json.gz --batch 64 -o trace.json\n"
          "  ganymede import profiler rank0.json rank1.json --batch 64 --gpu V100 --layers model.json -o trace.json\n"
          "  ganymede plan --trace trace.json --images 50000000 --gpu A100-40GB --deadline 60h\n",
      .about =
          "Turns the trace of torch.profiler into a step trace. Its steps are those of profiler.step(), else\n"
          "those in which its kernels repeat, else the whole trace is one. Its phases are the outermost\n"
          "record_function() of that thread, its gradients the all-reduces of NCCL. If several ranks are\n"
          "given, the first becomes the trace and the others are compared with it. Time spent waiting for\n"
          "other ranks is removed, because simulations add their own. Files may be gzipped, lists of events\n"
          "or cut short, and are read as a stream.",
      .declare = declare_import_profiler};
}

void declare_import(Parser command, Shared& shared) {
  command.require_subcommand();
  for (const Command& importer : {import_layers_command(), import_profiler_command(), import_nccl_tests_command(),
                                  import_simgrid_command(), import_jobs_command()})
    add_command(command, importer, shared);
}

}  // namespace

Command import_command() {
  return {
      .name = "import",
      .summary = "take over what other programs measured",
      .examples =
          "  ganymede import nccl-tests all_reduce.log --catalog aws --instance p4d.24xlarge --nodes 2 -o "
          "measured.json\n"
          "  ganymede allreduce --catalog aws --overlay measured.json --instance p4d.24xlarge --nodes 8 --scheme "
          "nccl,ring --bytes 64MiB\n"
          "  ganymede import profiler rank0.json.gz --batch 64 --gpu A100-40GB -o trace.json\n"
          "  ganymede import layers stylegan2 --batch 4,8 -o stylegan2.json\n"
          "  ganymede import jobs sacct.txt -o jobs.csv\n"
          "  ganymede import simgrid cluster.xml --gpu A100-40GB -o cluster.json\n",
      .about =
          "Turns measurements of other programs into files that simulations use: a log of nccl-tests into a link\n"
          "of a platform, a PyTorch profiler trace or a list of layers into a step trace, the accounting of a cluster\n"
          "into the jobs of a simulated one, and a platform of SimGrid into one of its own.",
      .declare = declare_import};
}

}  // namespace ganymede::cli
