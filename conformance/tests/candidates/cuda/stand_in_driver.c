/* Plays libcuda.so.1 on a machine without a GPU, as far as the worker and the CUDA test candidates
 * use it: device memory is host memory, streams are done at once, a launched kernel faults. There
 * are KVCTS_STAND_IN_DEVICES devices, else one, or those of CUDA_VISIBLE_DEVICES; each
 * cuCtxSynchronize() writes its device's number as a line of the file KVCTS_STAND_IN_LOG. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
typedef unsigned long long device_pointer;
enum { ok = 0, out_of_memory = 2, illegal_address = 700 };

static int sticky = ok;
static int here = 1;

API int cuInit(unsigned flags) { return (int)flags; }
/* The machine's number of a device of this process; negative where there is none. */
static int physical(int ordinal) {
  const char* machine = getenv("KVCTS_STAND_IN_DEVICES");
  const int devices = machine != NULL ? atoi(machine) : 1;
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  int number = ordinal;
  if (ordinal < 0) return -1;
  for (int i = 0; visible != NULL && i <= ordinal; ++i) {
    number = *visible >= '0' && *visible <= '9' ? atoi(visible) : -1;
    visible = strchr(visible, ',');
    if (visible == NULL && i < ordinal) return -1;
    if (visible != NULL) ++visible;
  }
  return number < devices ? number : -1;
}

API int cuDeviceGetCount(int* count) {
  for (*count = 0; physical(*count) >= 0;) ++*count;
  return ok;
}
API int cuDeviceGetName(char* name, int bytes, int device) {
  snprintf(name, (size_t)bytes, "stand-in %d", physical(device));
  return ok;
}
API int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return physical(ordinal) >= 0 ? ok : 101;
}
API int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  *context = &here;
  return ok;
}
API int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  return ok;
}
API int cuCtxSetCurrent(void* context) { return context == &here ? ok : 201; }
API int cuCtxSynchronize(void) {
  const char* log = getenv("KVCTS_STAND_IN_LOG");
  const int file = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  char line[16];
  if (file >= 0) {
    const int length = snprintf(line, sizeof line, "%d\n", physical(0));
    if (write(file, line, (size_t)length) != length) sticky = out_of_memory;
    close(file);
  }
  return sticky;
}
API int cuStreamCreate(void** stream, unsigned flags) {
  *stream = &here;
  return (int)flags;
}
API int cuStreamSynchronize(void* stream) { return stream == &here ? sticky : 400; }
API int cuMemAlloc_v2(device_pointer* made, size_t bytes) {
  if (sticky != ok) return sticky;
  /* Zero already, without being touched: gigabytes cost nothing. */
  char* memory = calloc(1, bytes + 512);
  if (memory == NULL) return out_of_memory;
  char* aligned = memory + 512 - (device_pointer)memory % 256;
  memcpy(aligned - sizeof memory, &memory, sizeof memory);
  *made = (device_pointer)aligned;
  return ok;
}
API int cuMemFree_v2(device_pointer memory) {
  char* allocated = NULL;
  memcpy(&allocated, (char*)memory - sizeof allocated, sizeof allocated);
  free(allocated);
  return sticky;
}
API int cuMemcpyHtoD_v2(device_pointer to, const void* from, size_t bytes) {
  memcpy((void*)to, from, bytes);
  return sticky;
}
API int cuMemcpyDtoH_v2(void* to, device_pointer from, size_t bytes) {
  memcpy(to, (void*)from, bytes);
  return sticky;
}
API int cuMemcpyDtoDAsync_v2(device_pointer to, device_pointer from, size_t bytes, void* stream) {
  if (stream != &here) return 400;
  memcpy((void*)to, (void*)from, bytes);
  return sticky;
}
API int cuMemsetD8_v2(device_pointer to, unsigned char value, size_t bytes) {
  if (value != 0 || bytes < (size_t)1 << 30) memset((void*)to, value, bytes);
  return sticky;
}
API int cuMemsetD8Async(device_pointer to, unsigned char value, size_t bytes, void* stream) {
  return stream != &here ? 400 : cuMemsetD8_v2(to, value, bytes);
}
API int cuModuleLoadData(void** module, const void* image) {
  *module = &here;
  return image != NULL ? ok : 200;
}
API int cuModuleGetFunction(void** function, void* module, const char* name) {
  *function = module;
  return name != NULL ? ok : 500;
}
API int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                       unsigned by, unsigned bz, unsigned shared, void* stream, void** arguments,
                       void** extra) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
  (void)shared, (void)stream, (void)arguments, (void)extra;
  sticky = illegal_address;
  return ok;
}
API int cuGetErrorString(int error, const char** text) {
  *text = error == illegal_address ? "an illegal memory access was encountered" : "some error";
  return ok;
}
