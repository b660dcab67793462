#include "machine.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace ganymede::kernel::stand_in {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kAligned = 256;                        ///< cudaMalloc's alignment
constexpr std::size_t kGarbageBytes = std::size_t{1} << 16;  ///< of new memory that are filled with NaN
constexpr std::uint8_t kCanary = 0xA5;

std::unique_ptr<Machine> the_machine;

std::size_t rounded(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

}  // namespace

Machine& machine() {
  if (!the_machine) the_machine = std::make_unique<Machine>(Settings{.devices = 0});
  return *the_machine;
}
std::mutex& machine_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::condition_variable& machine_changed() {
  static std::condition_variable changed;
  return changed;
}
int& current_device() {
  thread_local int device = 0;
  return device;
}
cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

void begin(const Settings& settings) {
  const std::lock_guard lock(machine_mutex());
  the_machine = std::make_unique<Machine>(settings);
  current_device() = 0;
  last_error() = cudaSuccess;
}

std::vector<std::string> end() {
  const std::lock_guard lock(machine_mutex());
  Machine& here = machine();
  for (const auto& [handle, one] : here.handles)
    if (one.is_live) here.violate(fmt::format("a {} was not destroyed", one.kind));
  for (const auto& [begin, block] : here.blocks)
    if (block.is_live) here.violate(fmt::format("{} bytes were not freed", block.bytes));
  auto found = std::move(here.violations);
  the_machine.reset();
  return found;
}

void break_network() {
  const std::lock_guard lock(machine_mutex());
  machine().network_is_broken = true;
}

int calls(int device) { return machine().calls[static_cast<std::size_t>(device)]; }
std::string failed_call() { return machine().failed_call; }
std::size_t launches() { return machine().launches; }
std::size_t launches_together() { return machine().launches_together; }
std::size_t tensor_core_convolutions() { return machine().tensor_core_convolutions; }
std::size_t fused_convolutions() { return machine().fused_convolutions; }
std::size_t compiled_plans() { return machine().compiled_plans; }
std::size_t graph_nodes() { return machine().graph_nodes; }

Machine::~Machine() {
  for (const auto& [begin, block] : blocks) ::munmap(block.mapping, block.mapped_bytes);
}

// The memory ends at a page that nobody may touch, apart from a few bytes of canaries.
void* Machine::allocate(std::size_t bytes, int device) {
  const std::size_t room = rounded(bytes, kAligned), pages = rounded(room, kPage), mapped = pages + 2 * kPage;
  // Each block has upper halves of addresses of its own, so that two neighbouring numbers of 32 bits do not look like
  // an address of another block.
  constexpr std::uintptr_t kFirst = std::uintptr_t{0x2000} << 32;
  void* wanted = reinterpret_cast<void*>(kFirst + (std::uintptr_t{slots} << 32));
  slots += (mapped >> 32) + 1;
  void* mapping =
      ::mmap(wanted, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* data = static_cast<std::uint8_t*>(mapping) + kPage;
  ::mprotect(data, pages, PROT_READ | PROT_WRITE);
  std::uint8_t* first = data + pages - room;
  std::memset(first, 0xFF, std::min(bytes, kGarbageBytes));
  std::memset(first + bytes, kCanary, room - bytes);
  blocks[reinterpret_cast<std::uintptr_t>(first)] = {mapping, mapped, bytes, device};
  return first;
}

bool Machine::release(void* memory, bool is_pinned) {
  const auto found = blocks.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == blocks.end() || !found->second.is_live || (found->second.device < 0) != is_pinned) {
    violate("memory is freed that is not there");
    return false;
  }
  Block& block = found->second;
  const auto* first = static_cast<const std::uint8_t*>(memory);
  for (const std::uint8_t* at = first + block.bytes; at < first + rounded(block.bytes, kAligned); ++at)
    if (*at != kCanary) {
      violate(fmt::format("something wrote behind a block of {} bytes", block.bytes));
      break;
    }
  block.is_live = false;
  // Gives the pages back and keeps the addresses, which are never used again.
  ::mmap(block.mapping, block.mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return true;
}

const Block* Machine::block_of(std::uintptr_t address) const {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin()) return nullptr;
  const auto& [begin, block] = *std::prev(after);
  return address < begin + std::max<std::size_t>(block.bytes, 1) ? &block : nullptr;
}

bool Machine::check_range(const void* memory, std::size_t bytes, int device, const char* what) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const Block* block = block_of(first);
  if (block == nullptr)
    violate(fmt::format("{}: the address is none of its device", what));
  else if (!block->is_live)
    violate(fmt::format("{}: the memory was freed", what));
  else if (block->device != device)
    violate(fmt::format("{}: the memory is of device {}", what, block->device));
  else if (bytes > 0 && block_of(first + bytes - 1) != block)
    violate(fmt::format("{}: {} bytes do not fit the memory", what, bytes));
  else
    return true;
  return false;
}

void Machine::check_words(const Op& op, int device) {
  for (const std::uintptr_t word : op.words) {
    const Block* block = block_of(word);
    if (block == nullptr) continue;
    if (!block->is_live) violate(fmt::format("{} has an address of freed memory", op.name));
    if (block->device >= 0 && block->device != device) violate(fmt::format("{} has another GPU's address", op.name));
  }
}

std::size_t Machine::used_bytes(int device) const {
  std::size_t sum = 0;
  for (const auto& [begin, block] : blocks)
    if (block.is_live && block.device == device) sum += block.bytes;
  return sum;
}

void Machine::push(StreamState& stream, Op op) {
  check_words(op, stream.device);
  if (stream.capture != nullptr) {
    Capture& capture = *stream.capture;
    auto& tail = capture.tails[&stream];
    capture.nodes.push_back({std::move(op), tail, &stream == capture.origin});
    tail = {capture.nodes.size() - 1};
    return;
  }
  if (op.is_launch) ++launches;
  stream.queue.push_back(std::move(op));
  ++stream.pushed;
  if (settings.order == Order::at_once || (settings.order == Order::others_first && !stream.is_first))
    advance(stream, stream.pushed);
}

bool Machine::advance(StreamState& stream, std::uint64_t position) {
  while (stream.done < position) {
    if (!stream.queue.front().run()) return false;
    stream.queue.pop_front();
    ++stream.done;
    ++progress;
  }
  return true;
}

std::vector<StreamState*> Machine::streams() const {
  std::vector<StreamState*> all;
  for (const auto& [handle, one] : handles)
    if (std::string(one.kind) == "stream") all.push_back(static_cast<StreamState*>(one.state.get()));
  return all;
}

void Machine::advance_all() {
  for (StreamState* stream : streams()) advance(*stream, stream->pushed);
}

bool Machine::wait(std::unique_lock<std::mutex>& lock, const char* name, const std::function<bool()>& reached) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = std::chrono::seconds(5);  // without progress of any stream
  // Who has waited for ever once is not waited for again, so that a failing test ends soon.
  const bool gave_up =
      std::any_of(violations.begin(), violations.end(), [](const auto& one) { return one.ends_with("for ever"); });
  std::uint64_t seen = progress;
  for (auto begin = Clock::now(); Clock::now() - begin < (gave_up ? kPatience / 50 : kPatience);) {
    if (reached()) return true;
    // Another GPU works by itself, whatever its host thread does.
    advance_all();
    if (reached()) return true;
    if (std::exchange(seen, progress) != progress) begin = Clock::now();
    machine_changed().wait_for(lock, std::chrono::milliseconds(50));
  }
  violate(fmt::format("{} waits for ever", name));
  return false;
}

bool Machine::is_stuck(const char* name) {
  constexpr auto kPatience = std::chrono::seconds(10);  // without progress of any stream
  const auto now = std::chrono::steady_clock::now();
  if (std::exchange(progress_seen, progress) != progress || since == decltype(since){}) since = now;
  if (now - since < kPatience) return false;
  violate(fmt::format("{} is asked for ever", name));
  return true;
}

}  // namespace ganymede::kernel::stand_in
