#pragma once
// What a job does: the program's command on its input, a table of the result, and the result's report page.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "serve/command_run.hpp"
#include "serve/job_store.hpp"

namespace ganymede::serve {

/// Fills in what `record` says of the end; `state` is cancelled where `stop` was raised. Throws nothing.
void do_job(JobRecord& record, const std::vector<std::string>& arguments, const std::filesystem::path& folder,
            const StopSignal& stop, Seconds limit, const std::function<void(const Progress&)>& progress);

}  // namespace ganymede::serve
