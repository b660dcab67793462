#include "serve/refusal_log.hpp"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "common/dates.hpp"
#include "common/printable.hpp"

namespace ganymede::serve {

void RefusalLog::add(int status, std::string_view method, std::string_view path) {
  constexpr std::size_t kMaxMethod = 16, kMaxPath = 200;
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  if (const auto size = std::filesystem::file_size(file_, ignored); !ignored && size > kMaxBytes)
    std::filesystem::rename(file_, file_.string() + ".1", ignored);
  std::ofstream(file_, std::ios::app) << fmt::format("{} {} {} {}\n", format_time(now()), status,
                                                     printable(method.substr(0, kMaxMethod)),
                                                     printable(path.substr(0, kMaxPath)));
}

}  // namespace ganymede::serve
