/* The interface of a candidate: a shared library that KVCTS tests from outside.
 *
 * Plain C11, needs nothing else. A library exports two functions, kvcts_candidate_describe() and
 * kvcts_candidate_run(); `kvcts run --candidate ./libmine.so` does the rest. What a call holds for
 * a kernel is printed by `kvcts describe KERNEL --abi`.
 *
 * The library is loaded in a process of its own (`kvcts bench --vs ./libmine.so` also loads it into
 * kvcts, to time it). It is called from one thread, a call at a time. No exception may leave it.
 * Pointers that KVCTS hands over are good until the call returns.
 */
#ifndef KVCTS_CANDIDATE_H
#define KVCTS_CANDIDATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Rises when something here changes its meaning. New fields go to the end of a struct, whose
 * `struct_bytes` tells whether they are there. */
#define KVCTS_ABI_VERSION 1

/* Put before the definitions of the two functions. */
#ifdef __cplusplus
#define KVCTS_LINKAGE extern "C"
#else
#define KVCTS_LINKAGE
#endif
#if defined(__GNUC__) || defined(__clang__)
#define KVCTS_EXPORT KVCTS_LINKAGE __attribute__((visibility("default")))
#else
#define KVCTS_EXPORT KVCTS_LINKAGE
#endif

/* What an element is. The number is fixed for ever. */
typedef int32_t kvcts_dtype;
enum {
  KVCTS_BF16 = 1,       /* 2 bytes */
  KVCTS_F32 = 2,        /* 4 bytes */
  KVCTS_F8E4M3FN = 3,   /* 1 byte, OCP */
  KVCTS_F8E4M3FNUZ = 4, /* 1 byte, the other bias, no negative zero */
  KVCTS_UE8M0 = 5,      /* 1 byte, the scale 2^(byte - 127) */
  KVCTS_E2M1X2 = 6,     /* 1 byte, two codes, the first in the low nibble */
  KVCTS_U8 = 7,
  KVCTS_I32 = 8,
  KVCTS_I64 = 9,
  KVCTS_BOOL = 10 /* 1 byte, 0 or 1 */
};

/* Where memory is: DLPack's numbers. */
typedef int32_t kvcts_device_type;
enum {
  KVCTS_CPU = 1,
  KVCTS_CUDA = 2,
  KVCTS_ROCM = 10 /* reserved for HIP: refused in this version */
};

typedef struct kvcts_device {
  kvcts_device_type type;
  int32_t id; /* which GPU, from 0; 0 for the CPU */
} kvcts_device;

/* The storage type of an element in DLPack's terms: code 0 signed, 1 unsigned, 2 IEEE float, 4
 * bfloat. fp8, packed fp4 and bool are unsigned bytes here; kvcts_argument.type tells them apart.
 */
typedef struct kvcts_storage_type {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes; /* always 1 */
} kvcts_storage_type;

/* Laid out as DLPack's DLTensor: cast a pointer where that is what you have functions for. */
typedef struct kvcts_tensor {
  void* data;          /* element (0, 0, ...), on `device`. The storage that it belongs to starts at
                          a multiple of 16 bytes. Not to be read or written where the tensor is
                          empty. */
  kvcts_device device; /* what kvcts_candidate_describe() asked for */
  int32_t ndim;        /* 1 or more */
  kvcts_storage_type storage;
  int64_t* shape;       /* ndim sizes; any of them may be 0 */
  int64_t* strides;     /* ndim strides in elements, never null, never negative. Look at them: rows
                           and pages of many cases stand further apart than their size. */
  uint64_t byte_offset; /* always 0: `data` is element 0 already */
} kvcts_tensor;

typedef int32_t kvcts_role;
enum {
  KVCTS_INPUT = 0,   /* read only, and the memory is protected */
  KVCTS_UPDATED = 1, /* read and written in place: bytes that the kernel does not own must stay */
  KVCTS_OUTPUT = 2   /* every element is to be written; holds canary bytes before */
};

typedef struct kvcts_argument {
  const char* name; /* as `kvcts describe` prints it */
  kvcts_role role;
  kvcts_dtype type;
  kvcts_tensor tensor;
} kvcts_argument;

typedef int32_t kvcts_kind;
enum {
  KVCTS_INTEGER = 0, /* `integer` holds the value; booleans are 0 and 1 */
  KVCTS_REAL = 1,    /* `real` holds the value; kernels round it to f32 */
  KVCTS_TEXT = 2     /* `text` holds the value, UTF-8, ends in a zero byte */
};

typedef struct kvcts_attribute {
  const char* name;
  kvcts_kind kind;
  int64_t integer;
  double real;
  const char* text; /* null unless kind is KVCTS_TEXT */
} kvcts_attribute;

/* One call of one kernel. */
typedef struct kvcts_call {
  uint32_t struct_bytes; /* sizeof(kvcts_call) of the KVCTS that calls */
  uint32_t abi_version;  /* KVCTS_ABI_VERSION of the KVCTS that calls */
  const char* kernel;
  const char* profile; /* rules of the arithmetic: "nvidia" or "ieee" */
  /* In the kernel's order. An absent optional argument or attribute is not in the list. Arguments
   * do not overlap. */
  const kvcts_argument* arguments;
  int32_t argument_count;
  int32_t attribute_count;
  const kvcts_attribute* attributes;
  /* CPU: null. CUDA: a cudaStream_t (CUstream) of the device's primary context, which is current.
   * Queue the work there; KVCTS waits for it. */
  void* stream;
  /* Room for one line of text, `message_bytes` with its final zero: why the answer is
   * KVCTS_UNSUPPORTED or KVCTS_ERROR. Holds "" before the call. */
  char* message;
  size_t message_bytes;
} kvcts_call;

/* What kvcts_candidate_run() answers. */
typedef int32_t kvcts_answer;
enum {
  KVCTS_OK = 0,
  KVCTS_UNSUPPORTED = 1, /* this call is not claimed. Counted as such, neither pass nor failure */
  KVCTS_ERROR = 2        /* it is claimed, and went wrong: the case fails */
};

/* What a library says of itself. Everything stays valid until the library is unloaded. */
typedef struct kvcts_candidate_info {
  uint32_t abi_version;       /* KVCTS_ABI_VERSION */
  uint32_t struct_bytes;      /* sizeof(kvcts_candidate_info) */
  const char* name;           /* short, for the verdict and the report */
  const char* version;        /* tells builds apart */
  const char* vendor;         /* null: not told */
  kvcts_device device;        /* where arguments shall be */
  const char* const* kernels; /* names of the kernels that are claimed; the last pointer is null */
  /* Profiles that are claimed, as `kernels`; null: all. What differs between them is in
   * docs/numerics.md: claim those whose arithmetic you follow, such as {"nvidia", NULL}. */
  const char* const* profiles;
  /* Flags of cases (`kvcts list KERNEL` prints them) that are not claimed, such as "Fnuz", as
   * `kernels`; null: none. */
  const char* const* flags_not_claimed;
} kvcts_candidate_info;

/* To be defined by the library (KVCTS_EXPORT before the definition). */
KVCTS_EXPORT const kvcts_candidate_info* kvcts_candidate_describe(void);
KVCTS_EXPORT kvcts_answer kvcts_candidate_run(const kvcts_call* call);

/* Helpers. Null where there is none of the name. */
static inline const kvcts_tensor* kvcts_find_tensor(const kvcts_call* call, const char* name) {
  for (int32_t i = 0; i < call->argument_count; ++i) {
    if (strcmp(call->arguments[i].name, name) == 0) return &call->arguments[i].tensor;
  }
  return NULL;
}

static inline const kvcts_argument* kvcts_find_argument(const kvcts_call* call, const char* name) {
  for (int32_t i = 0; i < call->argument_count; ++i) {
    if (strcmp(call->arguments[i].name, name) == 0) return &call->arguments[i];
  }
  return NULL;
}

static inline const kvcts_attribute* kvcts_find_attribute(const kvcts_call* call,
                                                          const char* name) {
  for (int32_t i = 0; i < call->attribute_count; ++i) {
    if (strcmp(call->attributes[i].name, name) == 0) return &call->attributes[i];
  }
  return NULL;
}

/* The attribute's value, or `fallback` where it is absent or of another kind. */
static inline int64_t kvcts_integer(const kvcts_call* call, const char* name, int64_t fallback) {
  const kvcts_attribute* found = kvcts_find_attribute(call, name);
  return found != NULL && found->kind == KVCTS_INTEGER ? found->integer : fallback;
}

static inline double kvcts_real(const kvcts_call* call, const char* name, double fallback) {
  const kvcts_attribute* found = kvcts_find_attribute(call, name);
  return found != NULL && found->kind == KVCTS_REAL ? found->real : fallback;
}

static inline const char* kvcts_text(const kvcts_call* call, const char* name,
                                     const char* fallback) {
  const kvcts_attribute* found = kvcts_find_attribute(call, name);
  return found != NULL && found->kind == KVCTS_TEXT ? found->text : fallback;
}

/* Sets the call's message (cut where it is too long) and gives `answer` back. */
static inline kvcts_answer kvcts_say(const kvcts_call* call, kvcts_answer answer,
                                     const char* message) {
  size_t length = strlen(message);
  if (call->message_bytes == 0) return answer;
  if (length >= call->message_bytes) length = call->message_bytes - 1;
  memcpy(call->message, message, length);
  call->message[length] = '\0';
  return answer;
}

#endif
