// The stand-in notices what it is there for.

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstring>

#include "host_launches.hpp"
#include "machine.hpp"
#include "opened.hpp"

namespace ganymede::kernel::stand_in {
namespace {

/// Two streams and memory of a GPU, given back at the end.
struct Fixture {
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  float *device = nullptr, *pinned = nullptr;

  Fixture() {
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaMalloc(reinterpret_cast<void**>(&device), 64);
    cudaMallocHost(reinterpret_cast<void**>(&pinned), 64);
    std::memset(pinned, 0, 64);
  }
  ~Fixture() {
    cudaFree(device);
    cudaFreeHost(pinned);
    cudaEventDestroy(event);
    cudaStreamDestroy(other);
    cudaStreamDestroy(stream);
  }
  void set(cudaStream_t on, float value) const {
    cuda::launch_each(on, 1, 1, [to = device, value](std::size_t) { *to = value; });
  }
  /// The stream's work as an executable graph.
  template <class Work>
  cudaGraphExec_t captured(const Work& work) const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    work();
    if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return nullptr;
    cudaGraphInstantiate(&executable, graph, 0);
    cudaGraphDestroy(graph);
    return executable;
  }
};

/// The violations of what `work` does.
template <class Work>
std::vector<std::string> violations_of(const Work& work) {
  Session session;
  {
    Fixture fixture;
    work(fixture);
  }
  return session.violations();
}

TEST(StandIn, MissesWhatWasNotGivenBack) {
  Session session;
  void* memory = nullptr;
  cudaMalloc(&memory, 100);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  EXPECT_THAT(session.violations(),
              testing::UnorderedElementsAre("a stream was not destroyed", "100 bytes were not freed"));
}

TEST(StandIn, NoticesMemoryThatIsFreedOrTooSmall) {
  EXPECT_THAT(
      violations_of([](Fixture& f) {
        float* gone = nullptr;
        cudaMalloc(reinterpret_cast<void**>(&gone), 64);
        const cudaGraphExec_t graph =
            f.captured([&] { cuda::launch_each(f.stream, 1, 1, [gone](std::size_t) { *gone = 1; }); });
        cudaFree(gone);
        cuda::launch_each(f.stream, 1, 0, [gone](std::size_t) { *gone = 1; });
        cudaMemcpyAsync(f.device, f.pinned, 65, cudaMemcpyHostToDevice, f.stream);
        cudaGraphExecDestroy(graph);
        cudaGraphLaunch(graph, f.stream);
      }),
      testing::ElementsAre("each has an address of freed memory", "cudaMemcpyAsync: 65 bytes do not fit the memory",
                           "a graph instance is used that is not there"));
  EXPECT_THAT(violations_of([](Fixture& f) {
                cuda::launch_each(f.stream, 1, 1, [to = f.device](std::size_t) { to[16] = 1; });
                cudaStreamSynchronize(f.stream);
              }),
              testing::ElementsAre("something wrote behind a block of 64 bytes"));
}

TEST(StandIn, NoticesDescriptorsThatAreMisused) {
  Session session;
  cudnnBackendDescriptor_t tensor = nullptr, operation = nullptr;
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor);
  cudnnBackendCreateDescriptor(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, &operation);
  const auto set = [](cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      const std::vector<std::int64_t>& values) {
    return cudnnBackendSetAttribute(to, name, type, static_cast<std::int64_t>(values.size()), values.data());
  };
  EXPECT_NE(set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_FLOAT, {1, 8, 2, 2}), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(set(tensor, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, {1, 1}), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(cudnnBackendFinalize(tensor), CUDNN_STATUS_SUCCESS);
  const auto x = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X;
  EXPECT_NE(cudnnBackendSetAttribute(operation, x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor), CUDNN_STATUS_SUCCESS);
  set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, {CUDNN_DATA_FLOAT});
  set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, {1, 8, 2, 2});
  set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, {32, 4, 2, 1});
  set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {1});
  set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, {16});
  EXPECT_NE(cudnnBackendFinalize(tensor), CUDNN_STATUS_SUCCESS);
  set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, {32, 1, 16, 8});
  EXPECT_EQ(cudnnBackendFinalize(tensor), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(cudnnBackendSetAttribute(operation, x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor), CUDNN_STATUS_SUCCESS);
  EXPECT_NE(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, {2}), CUDNN_STATUS_SUCCESS);
  cudnnBackendDestroyDescriptor(tensor);
  cudnnBackendDestroyDescriptor(operation);
  const std::string graph = "a graph of operations: ";
  EXPECT_THAT(session.violations(),
              testing::ElementsAre(graph + "an attribute has another type or number of values",
                                   graph + "a descriptor has no such attribute",
                                   graph + "a descriptor is finalized without an attribute that it must have",
                                   graph + "a descriptor is used before it was finalized",
                                   graph + "a tensor is not channels-last",
                                   graph + "an attribute is set after its descriptor was finalized"));
}

TEST(StandIn, RefusesBlocksThatCannotWaitForEachOther) {
  const auto status_of = [](int blocks) {
    cudaError_t status = cudaSuccess;
    EXPECT_THAT(violations_of([&](Fixture& f) {
                  const auto nothing = [](auto...) {};
                  const auto term = [](std::size_t, std::size_t) { return cuda::Sums<1>{}; };
                  status = cuda::launch_columns_together<1>(f.stream, {blocks, 1, 1}, 1, 32 * blocks,
                                                            static_cast<cuda::Sums<1>*>(nullptr), nullptr, term,
                                                            nothing, nothing);
                  cudaGetLastError();
                }),
                testing::IsEmpty());
    return status;
  };
  EXPECT_EQ(status_of(kMultiprocessors * kBlocksTogether), cudaSuccess);
  EXPECT_EQ(status_of(kMultiprocessors * kBlocksTogether + 1), cudaErrorCooperativeLaunchTooLarge);
}

TEST(StandIn, NoticesWhatACaptureMayNotHold) {
  float host = 0;
  EXPECT_THAT(violations_of([&](Fixture& f) {
                cudaEventRecord(f.event, f.other);
                EXPECT_NE(f.captured([&] {
                  EXPECT_NE(cudaStreamSynchronize(f.stream), cudaSuccess);
                  EXPECT_NE(cudaStreamQuery(f.stream), cudaSuccess);
                  cudaGetLastError();
                  EXPECT_NE(cudaStreamWaitEvent(f.stream, f.event, 0), cudaSuccess);
                  cudaMemcpyAsync(f.device, &host, 4, cudaMemcpyHostToDevice, f.stream);
                }),
                          nullptr);
              }),
              testing::IsSupersetOf(
                  {"cudaStreamSynchronize on a stream that captures", "cudaStreamQuery on a stream that captures",
                   "a stream that captures waits for an event from outside of the capture",
                   "memory that is not pinned is copied in a capture", "a graph instance was not destroyed"}));
}

TEST(StandIn, RefusesACaptureThatDoesNotJoinItsStreams) {
  EXPECT_THAT(violations_of([](Fixture& f) {
                EXPECT_EQ(f.captured([&] {
                  cudaEventRecord(f.event, f.stream);
                  cudaStreamWaitEvent(f.other, f.event, 0);
                  f.set(f.other, 1);
                }),
                          nullptr);
                cudaGetLastError();
              }),
              testing::IsEmpty());
}

/// The number in memory when one stream has set 1 and another 2, after an event or not.
float result_of(Order order, bool with_event, bool in_graph) {
  const Session session({.order = order});
  Fixture f;
  cudaEvent_t joined = nullptr;
  cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
  const auto work = [&] {
    cudaEventRecord(f.event, f.stream);
    if (!with_event) cudaStreamWaitEvent(f.other, f.event, 0);
    f.set(f.stream, 1);
    cudaEventRecord(f.event, f.stream);
    if (with_event) cudaStreamWaitEvent(f.other, f.event, 0);
    f.set(f.other, 2);
    cudaEventRecord(joined, f.other);
    cudaStreamWaitEvent(f.stream, joined, 0);
  };
  if (in_graph) {
    const cudaGraphExec_t graph = f.captured(work);
    cudaGraphLaunch(graph, f.stream);
    cudaGraphExecDestroy(graph);
  } else {
    work();
  }
  cudaMemcpyAsync(f.pinned, f.device, 4, cudaMemcpyDeviceToHost, f.stream);
  cudaStreamSynchronize(f.stream);
  cudaEventDestroy(joined);
  return *f.pinned;
}

TEST(StandIn, ShowsAMissingEventByADifferentResult) {
  for (const bool in_graph : {false, true}) {
    for (const Order order : {Order::late, Order::at_once, Order::others_first})
      EXPECT_EQ(result_of(order, true, in_graph), 2);
    EXPECT_EQ(result_of(Order::late, false, in_graph), 2);
    EXPECT_EQ(result_of(Order::others_first, false, in_graph), 1);
  }
}

}  // namespace
}  // namespace ganymede::kernel::stand_in
