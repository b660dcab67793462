// The stand-in's CUDA runtime: devices, memory, streams, events.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "host_launches.hpp"
#include "machine.hpp"

namespace ganymede::kernel::stand_in {
namespace {

StreamState* stream_of(Machine& here, cudaStream_t stream) { return here.use<StreamState>(stream, "stream"); }
EventState* event_of(Machine& here, cudaEvent_t event) { return here.use<EventState>(event, "event"); }

/// Waits until the stream has done so much. False, and a violation, if it captures or never gets there.
bool reach(Machine& here, std::unique_lock<std::mutex>& lock, const char* name, StreamState& stream,
           std::uint64_t position) {
  if (stream.capture != nullptr) {
    here.violate(fmt::format("{} on a stream that captures", name));
    return false;
  }
  return here.wait(lock, name, [&] { return here.advance(stream, position); });
}

cudaError_t allocate(const char* name, void** to, std::size_t bytes, bool pinned) {
  return runtime_call(name, [&](Machine& here, auto&) {
    const int device = current_device();
    for (const StreamState* stream : here.streams())
      if (stream->device == device && stream->capture != nullptr) here.violate(fmt::format("{} in a capture", name));
    if (!pinned && here.used_bytes(device) + bytes > here.settings.memory_bytes) return cudaErrorMemoryAllocation;
    *to = here.allocate(bytes, pinned ? -1 : device);
    return cudaSuccess;
  });
}

/// Freeing memory waits for all of the device's work.
cudaError_t release(const char* name, void* memory, bool pinned) {
  return runtime_call(
      name,
      [&](Machine& here, auto& lock) {
        if (memory == nullptr) return cudaSuccess;
        const Block* block = here.block_of(reinterpret_cast<std::uintptr_t>(memory));
        const int device = block == nullptr || pinned ? current_device() : block->device;
        const auto is_idle = [&] {
          const auto all = here.streams();
          return std::all_of(all.begin(), all.end(), [&](StreamState* stream) {
            return stream->device != device || here.advance(*stream, stream->pushed);
          });
        };
        here.wait(lock, name, is_idle);
        return here.release(memory, pinned) ? cudaSuccess : cudaErrorInvalidValue;
      },
      true);
}

/// Large memory becomes zero by giving its pages back, which takes no time.
void set_bytes(void* memory, int value, std::size_t bytes) {
  constexpr std::uintptr_t kPage = 4096;
  auto* const first = static_cast<std::uint8_t*>(memory);
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kPage * kPage;
  if (value != 0 || begin >= end) {
    std::memset(memory, value, bytes);
    return;
  }
  std::memset(first, 0, begin - reinterpret_cast<std::uintptr_t>(memory));
  std::memset(reinterpret_cast<void*>(end), 0, reinterpret_cast<std::uintptr_t>(memory) + bytes - end);
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

Op done_by(const char* name, std::function<void()> work, std::vector<std::uintptr_t> words) {
  return {name,
          [work = std::move(work)] {
            work();
            return true;
          },
          std::move(words)};
}

std::uintptr_t word_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

bool is_pinned(const Machine& here, const void* memory) {
  const Block* block = here.block_of(word_of(memory));
  return block != nullptr && block->is_live && block->device < 0;
}

cudaError_t record(const char* name, cudaEvent_t handle, cudaStream_t on, bool external) {
  return runtime_call(name, [&](Machine& here, auto&) {
    EventState* event = event_of(here, handle);
    StreamState* stream = stream_of(here, on);
    if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
    Op op = done_by(name, [event] { event->has_time = true, event->time = std::chrono::steady_clock::now(); }, {});
    if (stream->capture != nullptr && !external) {
      event->capture = stream->capture;
      event->nodes = stream->capture->tails[stream];
      return cudaSuccess;
    }
    if (stream->capture == nullptr && external) here.violate("an event is recorded as external outside of a capture");
    if (stream->capture == nullptr) {
      event->capture = nullptr;
      event->stream = stream;
      event->position = stream->pushed + 1;
    }
    here.push(*stream, std::move(op));
    return cudaSuccess;
  });
}

/// The stream waits for an event of the capture that the stream is in, or joins.
cudaError_t wait_in_capture(Machine& here, StreamState& stream, const EventState& event) {
  Capture* capture = event.capture != nullptr ? event.capture : stream.capture;
  if (event.capture != capture || (stream.capture != nullptr && stream.capture != capture)) {
    here.violate("a stream that captures waits for an event from outside of the capture");
    return cudaErrorStreamCaptureIsolation;
  }
  stream.capture = capture;
  auto& tail = capture->tails[&stream];
  tail.insert(tail.end(), event.nodes.begin(), event.nodes.end());
  return cudaSuccess;
}

}  // namespace

cudaError_t launch(const char* name, cudaStream_t on, std::function<void()> work, std::vector<std::uintptr_t> words) {
  if (last_error() != cudaSuccess) return std::exchange(last_error(), cudaSuccess);  // of an earlier call
  const auto status = call(name, cudaErrorUnknown, [&](Machine& here, auto&) {
    StreamState* stream = stream_of(here, on);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->device != current_device()) here.violate("a kernel is launched on another GPU's stream");
    Op op = done_by(name, std::move(work), std::move(words));
    op.is_launch = true;
    here.push(*stream, std::move(op));
    return cudaSuccess;
  });
  return status;
}

}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

const char* cudaGetErrorString(cudaError_t) { return "an error of the stand-in"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error(), cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = machine().settings.devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int device) {
  current_device() = device;
  return runtime_call("cudaSetDevice", [](Machine&, auto&) { return cudaSuccess; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
  return runtime_call("cudaGetDeviceProperties", [&](Machine& here, auto&) {
    *to = {};
    std::strcpy(to->name, "stand-in");
    to->major = 9;
    to->multiProcessorCount = kMultiprocessors;
    to->cooperativeLaunch = here.settings.runs_together ? 1 : 0;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* to, int length, int device) {
  return runtime_call("cudaDeviceGetPCIBusId", [&](Machine&, auto&) {
    std::snprintf(to, static_cast<std::size_t>(length), "0000:00:%02x.0", static_cast<unsigned>(device));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, std::size_t shared) {
  return runtime_call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](Machine&, auto&) {
    if (threads < 1 || threads > 1024 || shared > 0) return cudaErrorInvalidValue;
    *blocks = kBlocksTogether;
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void**, std::size_t,
                                        cudaStream_t on) {
  const auto& kernel = *static_cast<const TogetherKernel*>(function);
  const cudaError_t status = runtime_call("cudaLaunchCooperativeKernel", [&](Machine& here, auto&) {
    if (!here.settings.runs_together) return cudaErrorNotSupported;
    if (grid.x * grid.y * grid.z > kMultiprocessors * kBlocksTogether || block.x * block.y * block.z > 1024)
      return cudaErrorCooperativeLaunchTooLarge;
    ++here.launches_together;
    return cudaSuccess;
  });
  return status == cudaSuccess ? launch(kernel.name, on, kernel.work, kernel.words) : status;
}

cudaError_t cudaMalloc(void** to, std::size_t bytes) { return allocate("cudaMalloc", to, bytes, false); }
cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return allocate("cudaMallocHost", to, bytes, true); }
cudaError_t cudaFree(void* memory) { return release("cudaFree", memory, false); }
cudaError_t cudaFreeHost(void* memory) { return release("cudaFreeHost", memory, true); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return runtime_call("cudaMemGetInfo", [&](Machine& here, auto&) {
    *total = here.settings.memory_bytes;
    *free = *total - here.used_bytes(current_device());
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t on) {
  return runtime_call("cudaMemsetAsync", [&](Machine& here, auto&) {
    StreamState* stream = stream_of(here, on);
    if (stream == nullptr || !here.check_range(memory, bytes, stream->device, "cudaMemsetAsync"))
      return cudaErrorInvalidValue;
    here.push(*stream, done_by("cudaMemsetAsync", [=] { set_bytes(memory, value, bytes); }, {word_of(memory)}));
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t on) {
  return runtime_call("cudaMemcpyAsync", [&](Machine& here, auto& lock) {
    StreamState* stream = stream_of(here, on);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    const bool to_host = kind == cudaMemcpyDeviceToHost;
    const void *device = to_host ? from : to, *host = to_host ? to : from;
    if ((!to_host && kind != cudaMemcpyHostToDevice) ||
        !here.check_range(device, bytes, stream->device, "cudaMemcpyAsync"))
      return cudaErrorInvalidValue;
    std::vector<std::uintptr_t> words{word_of(to), word_of(from)};
    if (is_pinned(here, host)) {
      here.check_range(host, bytes, -1, "cudaMemcpyAsync");
      here.push(*stream, done_by(
                             "cudaMemcpyAsync", [=] { std::memcpy(to, from, bytes); }, std::move(words)));
      return cudaSuccess;
    }
    if (here.block_of(word_of(host)) != nullptr) here.violate("a copy has device memory where the host's is expected");
    if (stream->capture != nullptr) here.violate("memory that is not pinned is copied in a capture");
    const auto* bytes_of_host = static_cast<const std::uint8_t*>(from);
    if (to_host) {
      here.push(*stream, done_by(
                             "cudaMemcpyAsync", [=] { std::memcpy(to, from, bytes); }, std::move(words)));
      // CUDA returns only when the copy is done.
      return reach(here, lock, "a copy to memory that is not pinned", *stream, stream->pushed) ? cudaSuccess
                                                                                               : cudaErrorLaunchTimeout;
    }
    // CUDA returns as soon as it has the bytes.
    here.push(*stream, done_by("cudaMemcpyAsync",
                               [to, taken = std::vector<std::uint8_t>(bytes_of_host, bytes_of_host + bytes)] {
                                 std::memcpy(to, taken.data(), taken.size());
                               },
                               {word_of(to)}));
    return cudaSuccess;
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* to, unsigned) {
  return runtime_call("cudaStreamCreateWithFlags", [&](Machine& here, auto&) {
    const auto all = here.streams();
    const bool is_first = std::none_of(all.begin(), all.end(), [&](const StreamState* other) {
      return other->device == current_device() && here.handles.at(other).is_live;
    });
    *to = reinterpret_cast<cudaStream_t>(here.make("stream", StreamState{current_device(), is_first}));
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return runtime_call(
      "cudaStreamDestroy",
      [&](Machine& here, auto&) {
        StreamState* stream = here.destroy<StreamState>(handle, "stream");
        if (stream == nullptr) return cudaErrorInvalidResourceHandle;
        if (stream->capture != nullptr) here.violate("a stream is destroyed while it captures");
        here.advance(*stream, stream->pushed);
        return cudaSuccess;
      },
      true);
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return runtime_call("cudaStreamSynchronize", [&](Machine& here, auto& lock) {
    StreamState* stream = stream_of(here, handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return reach(here, lock, "cudaStreamSynchronize", *stream, stream->pushed) ? cudaSuccess : cudaErrorLaunchTimeout;
  });
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return runtime_call("cudaStreamQuery", [&](Machine& here, auto&) {
    StreamState* stream = stream_of(here, handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (stream->capture != nullptr) {
      here.violate("cudaStreamQuery on a stream that captures");
      return cudaErrorStreamCaptureUnsupported;
    }
    here.advance_all();
    if (here.advance(*stream, stream->pushed)) return cudaSuccess;
    return here.is_stuck("cudaStreamQuery") ? cudaErrorLaunchTimeout : cudaErrorNotReady;
  });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t awaited, unsigned) {
  return runtime_call("cudaStreamWaitEvent", [&](Machine& here, auto&) {
    StreamState* stream = stream_of(here, handle);
    const EventState* event = event_of(here, awaited);
    if (stream == nullptr || event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr || stream->capture != nullptr) return wait_in_capture(here, *stream, *event);
    if (event->stream == nullptr) return cudaSuccess;  // never recorded
    here.push(*stream, {"cudaStreamWaitEvent",
                        [&here, on = event->stream, at = event->position] { return here.advance(*on, at); },
                        {}});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* to, unsigned flags) {
  return runtime_call("cudaEventCreateWithFlags", [&](Machine& here, auto&) {
    EventState event;
    event.is_timed = (flags & cudaEventDisableTiming) == 0;
    *to = reinterpret_cast<cudaEvent_t>(here.make("event", std::move(event)));
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* to) { return cudaEventCreateWithFlags(to, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return runtime_call(
      "cudaEventDestroy",
      [&](Machine& here, auto&) {
        return here.destroy<EventState>(event, "event") != nullptr ? cudaSuccess : cudaErrorInvalidResourceHandle;
      },
      true);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return record("cudaEventRecord", event, stream, false);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return record("cudaEventRecordWithFlags", event, stream, (flags & cudaEventRecordExternal) != 0);
}
cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return runtime_call("cudaEventSynchronize", [&](Machine& here, auto& lock) {
    const EventState* event = event_of(here, handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr) {
      here.violate("the host waits for an event of a capture");
      return cudaErrorCapturedEvent;
    }
    if (event->stream == nullptr) return cudaSuccess;
    const auto reached = [&] { return here.advance(*event->stream, event->position); };
    return here.wait(lock, "cudaEventSynchronize", reached) ? cudaSuccess : cudaErrorLaunchTimeout;
  });
}
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return runtime_call("cudaEventQuery", [&](Machine& here, auto&) {
    const EventState* event = event_of(here, handle);
    if (event == nullptr) return cudaErrorInvalidResourceHandle;
    if (event->capture != nullptr) {
      here.violate("the host asks for an event of a capture");
      return cudaErrorCapturedEvent;
    }
    here.advance_all();
    if (event->stream == nullptr || here.advance(*event->stream, event->position)) return cudaSuccess;
    return here.is_stuck("cudaEventQuery") ? cudaErrorLaunchTimeout : cudaErrorNotReady;
  });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return runtime_call("cudaEventElapsedTime", [&](Machine& here, auto&) {
    const EventState *first = event_of(here, begin), *last = event_of(here, end);
    if (first == nullptr || last == nullptr) return cudaErrorInvalidResourceHandle;
    if (!first->is_timed || !last->is_timed || !first->has_time || !last->has_time) {
      here.violate("the time is asked of an event that has none");
      return cudaErrorInvalidResourceHandle;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(last->time - first->time).count();
    return cudaSuccess;
  });
}
