#!/usr/bin/env python3
"""How long TensorFlow's MirroredStrategy takes to start, by the number of replicas that its one process drives.

The network is the multilayer GAN of studies/multi_gpu_mirrored_2023. Each number of replicas has processes of its own, in
which one CPU is as many logical devices. Times are of the processor; the least counts, because other load only adds.
Three parts are timed: making the generator with its variables, making both networks and their optimizers, and the first
step, which traces the function for each replica, less a later step. Needs TensorFlow: pip install tensorflow-cpu.

  bench/mirrored_start.py                 # 1 to 4 replicas, the least of seven processes each
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def networks(keras):
    """The generator and the discriminator, without variables until they are built."""
    generator = keras.Sequential([
        keras.layers.Dense(1200), keras.layers.BatchNormalization(), keras.layers.Dense(1000),
        keras.layers.BatchNormalization(), keras.layers.Dense(784, activation="sigmoid")])
    discriminator = keras.Sequential([
        keras.layers.Dense(256), keras.layers.Dropout(0.3), keras.layers.Dense(128), keras.layers.Dropout(0.3),
        keras.layers.Dense(1)])
    return generator, discriminator


def measure(replicas: int) -> dict:
    os.environ.update({"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"})
    import tensorflow as tf
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    devices = [f"CPU:{index}" for index in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=tf.distribute.ReductionToOneDevice())
    tf.random.normal([2, 2])  # the runtime itself is no part of what is timed
    times = {"replicas": replicas, "tensorflow": tf.__version__}
    start = time.process_time()
    with strategy.scope():
        generator, discriminator = networks(tf.keras)
        generator.build([None, 50])
        times["generator_s"] = time.process_time() - start
        discriminator.build([None, 784])
        optimizers = [tf.keras.optimizers.Adam(1e-4), tf.keras.optimizers.Adam(1e-4)]
        optimizers[0].build(generator.trainable_variables)
        optimizers[1].build(discriminator.trainable_variables)
    times["networks_s"] = time.process_time() - start
    loss = tf.nn.sigmoid_cross_entropy_with_logits

    def step(real):
        with tf.GradientTape() as of_generator, tf.GradientTape() as of_discriminator:
            fake = generator(tf.random.normal([64, 50]), training=True)
            said = discriminator(fake, training=True)
            seen = discriminator(real, training=True)
            lost = tf.reduce_mean(loss(tf.ones_like(said), said))
            won = tf.reduce_mean(loss(tf.ones_like(seen), seen) + loss(tf.zeros_like(said), said))
        for tape, value, network, optimizer in ((of_generator, lost, generator, optimizers[0]),
                                                (of_discriminator, won, discriminator, optimizers[1])):
            weights = network.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(value, weights), weights))

    @tf.function
    def run(real):
        strategy.run(step, args=(real,))

    real = tf.random.uniform([64, 784])
    laps = []
    for _ in range(4):
        start = time.process_time()
        run(real)
        laps.append(time.process_time() - start)
    times["first_step_s"] = laps[0] - min(laps[1:])
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=4, help="replicas (4)")
    parser.add_argument("--repeats", type=int, default=7, help="processes for each number (7)")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one)))
        return
    parts = ("generator_s", "networks_s", "first_step_s")
    print("replicas  " + "  ".join(f"{part:>24}" for part in parts))
    for replicas in range(1, options.most + 1):
        command = [sys.executable, __file__, "--one", str(replicas)]
        runs = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                for _ in range(options.repeats)]
        cells = []
        for part in parts:
            values = sorted(run[part] for run in runs)
            cells.append(f"{values[0]:.3f} (median {statistics.median(values):.3f})")
        print(f"{replicas:8}  " + "  ".join(f"{cell:>24}" for cell in cells), flush=True)
    print(f"TensorFlow {runs[0]['tensorflow']}, seconds of processor time, the least of {options.repeats} processes; "
          "a start is networks_s and first_step_s together")


if __name__ == "__main__":
    main()
