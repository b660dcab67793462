// cuDNN's description of a device, as far as tools/cudnn_device.py asks for it. The GPU backend does not.

#include <cudnn.h>

#include <cstring>
#include <string_view>

#include "machine.hpp"

namespace ganymede::kernel::stand_in {
namespace {

constexpr const char* kKind = "backend descriptor";
constexpr std::string_view kDescription = R"({"name": "stand-in"})";

struct BackendState {
  bool has_device = false, is_final = false;
};

template <class Body>
cudnnStatus_t backend_call(const char* name, const void* handle, const Body& body) {
  return call(name, CUDNN_STATUS_EXECUTION_FAILED, [&](Machine& here, auto&) {
    auto* state = here.use<BackendState>(handle, kKind);
    return state != nullptr && body(*state) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
  });
}

}  // namespace
}  // namespace ganymede::kernel::stand_in

using namespace ganymede::kernel::stand_in;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* to) {
  if (type != CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR) return CUDNN_STATUS_NOT_SUPPORTED;
  *to = machine().make(kKind, BackendState{});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  return backend_call("cudnnBackendSetAttribute", descriptor, [&](BackendState& state) {
    state.has_device = name == CUDNN_ATTR_DEVICEPROP_DEVICE_ID && type == CUDNN_TYPE_INT32 && count == 1 &&
                       *static_cast<const std::int32_t*>(values) < machine().settings.devices;
    return state.has_device && !state.is_final;
  });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  return backend_call("cudnnBackendFinalize", descriptor,
                      [](BackendState& state) { return state.is_final = state.has_device; });
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t most, std::int64_t* count,
                                       void* to) {
  return backend_call("cudnnBackendGetAttribute", descriptor, [&](const BackendState& state) {
    if (!state.is_final || name != CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION || type != CUDNN_TYPE_CHAR) return false;
    *count = static_cast<std::int64_t>(kDescription.size());
    if (to != nullptr) std::memcpy(to, kDescription.data(), static_cast<std::size_t>(std::min(most, *count)));
    return true;
  });
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return machine().destroy<BackendState>(descriptor, kKind) != nullptr ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
