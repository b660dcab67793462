// The stand-in's CUDA graphs.

#include <algorithm>

#include "machine.hpp"

namespace ganymede::kernel::stand_in {
namespace {

/// True if every node leads to one of the origin's last nodes.
bool is_joined(const Capture& capture) {
  std::vector<bool> leads(capture.nodes.size(), false);
  for (const std::size_t last : capture.tails.at(capture.origin)) leads[last] = true;
  for (std::size_t i = capture.nodes.size(); i-- > 0;)
    for (const std::size_t before : capture.nodes[i].after)
      if (leads[i]) leads[before] = true;
  return std::all_of(leads.begin(), leads.end(), [](bool one) { return one; });
}

/// The nodes in an order that their dependencies allow, as extreme as the machine's Order.
std::vector<Node> ordered(const std::vector<Node>& nodes, Order order) {
  if (order == Order::at_once) return nodes;
  const bool origin_first = order == Order::late;
  std::vector<Node> all;
  std::vector<bool> done(nodes.size(), false);
  const auto take = [&](bool on_origin) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool is_ready = std::all_of(nodes[i].after.begin(), nodes[i].after.end(), [&](auto b) { return done[b]; });
      if (done[i] || nodes[i].on_origin != on_origin || !is_ready) continue;
      done[i] = true;
      all.push_back(nodes[i]);
      return true;
    }
    return false;
  };
  while (take(origin_first) || take(!origin_first)) continue;
  return all;
}

cudaError_t destroy_graph(const char* name, const char* kind, const void* handle) {
  return runtime_call(
      name,
      [&](Machine& here, auto&) {
        GraphState* state = here.destroy<GraphState>(handle, kind);
        if (state != nullptr) state->nodes.clear();
        return state != nullptr ? cudaSuccess : cudaErrorInvalidValue;
      },
      true);
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  return runtime_call("cudaStreamBeginCapture", [&](Machine& here, auto&) {
    StreamState* stream = here.use<StreamState>(handle, "stream");
    if (stream == nullptr || stream->capture != nullptr) return cudaErrorIllegalState;
    stream->capture = here.make("capture", Capture{stream});
    stream->capture->tails[stream] = {};
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* to) {
  *to = nullptr;
  return runtime_call(
      "cudaStreamEndCapture",
      [&](Machine& here, auto&) {
        StreamState* stream = here.use<StreamState>(handle, "stream");
        if (stream == nullptr || stream->capture == nullptr || stream->capture->origin != stream)
          return cudaErrorIllegalState;
        Capture* capture = stream->capture;
        for (StreamState* other : here.streams())
          if (other->capture == capture) other->capture = nullptr;
        here.destroy<Capture>(capture, "capture");
        const bool fails = !here.failed_call.empty() && here.failed_call == "cudaStreamEndCapture";
        if (!fails && is_joined(*capture))
          *to = reinterpret_cast<cudaGraph_t>(here.make("graph", GraphState{capture->nodes}));
        capture->nodes.clear();
        return *to != nullptr ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
      },
      true);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* to, cudaGraph_t graph, unsigned long long) {
  return runtime_call("cudaGraphInstantiate", [&](Machine& here, auto&) {
    const GraphState* from = here.use<GraphState>(graph, "graph");
    if (from == nullptr) return cudaErrorInvalidValue;
    here.graph_nodes = from->nodes.size();
    GraphState executable{ordered(from->nodes, here.settings.order)};
    *to = reinterpret_cast<cudaGraphExec_t>(here.make("graph instance", std::move(executable)));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t on) {
  return runtime_call("cudaGraphLaunch", [&](Machine& here, auto&) {
    const GraphState* from = here.use<GraphState>(graph, "graph instance");
    StreamState* stream = here.use<StreamState>(on, "stream");
    if (from == nullptr || stream == nullptr) return cudaErrorInvalidValue;
    for (const Node& node : from->nodes) here.push(*stream, node.op);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return destroy_graph("cudaGraphDestroy", "graph", graph); }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  return destroy_graph("cudaGraphExecDestroy", "graph instance", graph);
}
