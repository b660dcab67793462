#pragma once
// The GPU backend over any device, with all of its operations.

#include "kernel/ops/cuda/activations.hpp"
#include "kernel/ops/cuda/blocks.hpp"
#include "kernel/ops/cuda/codes.hpp"
#include "kernel/ops/cuda/elements.hpp"
#include "kernel/ops/cuda/losses.hpp"
#include "kernel/ops/cuda/make_backend.hpp"
#include "kernel/ops/cuda/minibatch_stddev.hpp"
#include "kernel/ops/cuda/modulation.hpp"
#include "kernel/ops/cuda/norm_tangents.hpp"
#include "kernel/ops/cuda/norms.hpp"
#include "kernel/ops/cuda/products.hpp"
#include "kernel/ops/cuda/random_ops.hpp"
#include "kernel/ops/cuda/translations.hpp"
