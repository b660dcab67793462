#pragma once
// Operations of one process among several.

#include "kernel/ops/tensor_ops.hpp"

namespace ganymede::kernel {

/// For the object's lifetime the operations treat this process as the only one. For samples and measurements that one
/// process makes alone.
class SingleProcessScope {
 public:
  explicit SingleProcessScope(TensorOps& ops)
      : ops_(ops), shard_(ops.shard()), norm_communicator_(ops.norm_communicator()) {
    ops.set_shard({});
    ops.set_norm_communicator(nullptr);
  }
  ~SingleProcessScope() {
    ops_.set_shard(shard_);
    ops_.set_norm_communicator(norm_communicator_);
  }
  SingleProcessScope(const SingleProcessScope&) = delete;
  SingleProcessScope& operator=(const SingleProcessScope&) = delete;

 private:
  TensorOps& ops_;
  Shard shard_;
  Communicator* norm_communicator_;
};

}  // namespace ganymede::kernel
