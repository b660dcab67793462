#include "kernel/parallel/bucket_reducer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "kernel/step_clock.hpp"

namespace ganymede::kernel {

BucketReducer::BucketReducer(Network& network, Backend& backend, Communicator& communicator, Compression compression)
    : network_(network),
      on_device_(backend.gradient_reducer.get()),
      communicator_(communicator),
      compression_(compression) {
  std::size_t end = network.parameter_floats(), begin = end, widest = 0;
  double open_bytes = 0;  // without padding, so that the buckets are those of make_buckets()
  for (std::size_t layer = network.layers().size(); layer-- > 0;) {
    const auto bytes = static_cast<double>(network.layer_parameters(layer) * sizeof(float));
    if (bytes == 0) continue;
    if (begin < end && open_bytes + bytes > kBucketBytes) end = begin, open_bytes = 0;
    open_bytes += bytes;
    begin -= network.layer_floats(layer);
    if (!buckets_.empty() && buckets_.back().end == end)
      buckets_.back() = {layer, begin, end};
    else
      buckets_.push_back({layer, begin, end});
  }
  for (const Bucket& bucket : buckets_) widest = std::max(widest, bucket.end - bucket.begin);
  if (on_device_ != nullptr) {
    allocate_packed(*backend.ops);
    return;
  }
  if (compression != Compression::none) {
    decoded_.resize(widest);
    mine_.resize(compressed_bytes(compression, widest));
    all_.resize(mine_.size() * static_cast<std::size_t>(communicator.shard().ranks));
    if (compression == Compression::int8) residual_.resize(network.parameter_floats());
  }
  thread_ = std::thread([this] { work(); });
}

void BucketReducer::allocate_packed(TensorOps& ops) {
  if (compression_ == Compression::none) return;
  for (Bucket& bucket : buckets_) {
    const std::size_t count = bucket.end - bucket.begin, bytes = compressed_bytes(compression_, count);
    const auto allocate = [&](std::size_t size) {
      packed_.push_back(ops.allocate(size));
      return static_cast<std::uint8_t*>(packed_.back().memory.get());
    };
    bucket.packed = {compression_, bytes, allocate(bytes),
                     allocate(bytes * static_cast<std::size_t>(communicator_.shard().ranks))};
    if (compression_ == Compression::int8)
      bucket.packed.residual = reinterpret_cast<float*>(allocate(sizeof(float) * count));
  }
}

BucketReducer::~BucketReducer() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BucketReducer::layer_done(std::size_t layer) {
  {
    const std::lock_guard lock(mutex_);
    if (ready_ == buckets_.size() || buckets_[ready_].first_layer != layer) return;
    ++ready_;
  }
  if (on_device_ != nullptr) {
    const Bucket& bucket = buckets_[ready_ - 1];
    return on_device_->reduce(network_.gradient_data() + bucket.begin, bucket.end - bucket.begin, bucket.packed);
  }
  wake_.notify_one();
}

void BucketReducer::wait() {
  if (on_device_ != nullptr) {
    ready_ = 0;
    return on_device_->finish();
  }
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return done_ == buckets_.size() || error_; });
  ready_ = done_ = 0;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  waited_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void BucketReducer::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || done_ < ready_; });
    if (stop_) return;
    const Bucket bucket = buckets_[done_];
    lock.unlock();
    std::exception_ptr error;
    try {
      reduce(bucket);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) error_ = error;
    ++done_;
    idle_.notify_one();
  }
}

void BucketReducer::reduce(const Bucket& bucket) {
  const std::span<float> gradients{network_.gradient_data() + bucket.begin, bucket.end - bucket.begin};
  const auto ranks = static_cast<std::size_t>(communicator_.shard().ranks);
  const float share = 1.0F / static_cast<float>(ranks);
  if (compression_ == Compression::none) {
    communicator_.sum_gradients(gradients);
    for (float& value : gradients) value *= share;
    return;
  }
  float* residual = residual_.empty() ? nullptr : residual_.data() + bucket.begin;
  for (std::size_t i = 0; residual != nullptr && i < gradients.size(); ++i) gradients[i] += residual[i];
  const std::size_t bytes = compressed_bytes(compression_, gradients.size());
  compress(compression_, gradients, mine_.data());
  const std::span<float> decoded{decoded_.data(), gradients.size()};
  if (residual != nullptr) {
    decompress(compression_, mine_.data(), decoded);
    for (std::size_t i = 0; i < gradients.size(); ++i) residual[i] = gradients[i] - decoded[i];
  }
  communicator_.gather_gradients({mine_.data(), bytes}, {all_.data(), bytes * ranks});
  // Summed in the order of the ranks, so that all processes have the same bits.
  std::fill(gradients.begin(), gradients.end(), 0.0F);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    decompress(compression_, all_.data() + rank * bytes, decoded);
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += share * decoded[i];
  }
}

}  // namespace ganymede::kernel
