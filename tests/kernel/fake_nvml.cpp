// A library with NVML's functions, for gpu_meter_test.cpp. It reports one GPU at 0000:01:00.0 that is 42 % busy.

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  static int gpu;
  const char expected[] = "0000:01:00.0";
  for (unsigned i = 0; i < sizeof expected; ++i)
    if (address[i] != expected[i]) return 6;  // not found
  *device = &gpu;
  return 0;
}

int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
  rates[0] = 42;
  rates[1] = 7;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void*, unsigned long long* memory) {
  memory[0] = 1000;
  memory[1] = 400;
  memory[2] = 600;
  return 0;
}
}
