#pragma once
// Does a job: runs the program's commands on its input, then makes a table and a report page of the result.

#include <filesystem>
#include <vector>

#include "common/units.hpp"
#include "serve/command_run.hpp"
#include "serve/job_commands.hpp"
#include "serve/job_store.hpp"

namespace ganymede::serve {

/// Runs the job in `folder` and fills in the end of `record`: state (cancelled if `stop` was raised), exit code and
/// messages. Throws nothing.
void do_job(JobRecord& record, const std::vector<JobCommand>& commands, const std::filesystem::path& folder,
            const StopSignal& stop, Seconds limit, const RunHooks& hooks);

}  // namespace ganymede::serve
