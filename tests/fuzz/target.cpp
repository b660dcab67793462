#include "target.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "common/budget.hpp"
#include "common/errors.hpp"
#include "common/json_value.hpp"
#include "sim/run/policy_process.hpp"

namespace ganymede::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> rows;
    for (const auto& list : {trace_targets(), platform_targets(), kernel_targets(), simulation_targets(),
                             plan_targets(), serve_targets(), command_targets()})
      rows.insert(rows.end(), list.begin(), list.end());
    return rows;
  }();
  return all;
}

const Target& target(std::string_view name) {
  const auto found =
      std::find_if(targets().begin(), targets().end(), [&](const Target& row) { return row.name == name; });
  if (found == targets().end()) throw std::out_of_range("no fuzz target \"" + std::string(name) + "\"");
  return *found;
}

void print_targets() {
  for (const Target& row : targets())
    std::printf("%s\t%s\n", std::string(row.name).c_str(), std::string(row.sources).c_str());
}

void expect(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: expected %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

void try_input(const Target& target, std::string_view bytes) {
  const auto say = [&](const std::exception& refusal) {
    if (std::getenv("GANYMEDE_FUZZ_SAY") != nullptr) std::fprintf(stderr, "refused: %s\n", refusal.what());
  };
  try {
    target.read(bytes);
  } catch (const ConfigError& error) {
    say(error);
  } catch (const Infeasible& error) {
    say(error);
  } catch (const BudgetExceeded& error) {
    say(error);
  } catch (const Failure& error) {
    say(error);
  } catch (const sim::PolicyFault& fault) {
    say(fault);
  } catch (const std::exception& unexpected) {
    std::fprintf(stderr, "fuzz: %.*s threw: %s\n", static_cast<int>(target.name.size()), target.name.data(),
                 unexpected.what());
    std::abort();
  }
}

std::string changed_by(const Target& target, std::string_view text, RandomStream& random) {
  if (random.below(4) == 0) return "";  // what is no JSON any more must be refused too
  if (target.change != nullptr) return target.change(text, random);
  return target.schema.empty() ? "" : changed_by_schema(text, target.schema, random);
}

std::filesystem::path file_of(std::string_view bytes) {
  static const int kFile = ::memfd_create("input", MFD_CLOEXEC);
  expect(kFile >= 0 && ::ftruncate(kFile, 0) == 0, "a file in memory");
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::pwrite(kFile, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    expect(wrote > 0, "a file that can be written");
    done += static_cast<std::size_t>(wrote);
  }
  return "/proc/self/fd/" + std::to_string(kFile);
}

}  // namespace ganymede::fuzz
