#pragma once
// The clock that all processes of a machine read, and the processor time of this one.

#include <sys/resource.h>
#include <time.h>

#include <ctime>

namespace ganymede::rehearsal {

/// Seconds since the machine was started.
inline double machine_time() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Seconds, not negative, as the system's calls take them.
inline timespec timespec_of(double seconds) {
  timespec time{};
  time.tv_sec = static_cast<std::time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  return time;
}

/// Returns at that moment of machine_time(), whatever signals come.
inline void sleep_until(double moment) {
  const timespec target = timespec_of(moment);
  while (machine_time() < moment && ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &target, nullptr) != 0) {
  }
}

/// Seconds that processors have spent on this process.
inline double processor_time() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

}  // namespace ganymede::rehearsal
