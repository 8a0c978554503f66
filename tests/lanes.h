// A GPU's threads on a host, for tests: one thread of the host plays all lanes in turn, a block at
// a time. A lane runs until it waits for others; lanes of a warp run in the order that `order`
// says, and a warp runs until it waits for its block. So what lacks a barrier is seen.
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define __device__
#define __global__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)

struct Index { int x; };
static Index threadIdx, blockIdx;

enum Waits { nowhere, in_warp, in_block, done };
static const int most = 1024;
static ucontext_t host, lanes[most];
static Waits waits[most];
static uint64_t words[most];

static void wait(Waits where) {
  const int lane = threadIdx.x;
  waits[lane] = where;
  swapcontext(&lanes[lane], &host);
}
static void __syncthreads() { wait(in_block); }
static void __syncwarp() { wait(in_warp); }

template <class V> static V __shfl_sync(unsigned, V x, int from) {
  const int lane = threadIdx.x;
  memcpy(&words[lane], &x, sizeof x);
  wait(in_warp);
  memcpy(&x, &words[lane / 32 * 32 + from], sizeof x);
  wait(in_warp);
  return x;
}
template <class V> static V __shfl_xor_sync(unsigned all, V x, int mask) {
  return __shfl_sync(all, x, (threadIdx.x ^ mask) % 32);
}
template <class V> static V __shfl_up_sync(unsigned all, V x, int far) {
  const int lane = threadIdx.x % 32;
  return __shfl_sync(all, x, lane < far ? lane : lane - far);
}
static int __popc(unsigned a) { return __builtin_popcount(a); }
static int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
static int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
static int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }

// Runs `program` for each thread of each block; it is to call the kernel.
static void play(int blocks, int threads, int order, void (*program)()) {
  static const size_t size = 1 << 16;
  static char* const stacks = (char*)malloc(most * size);
  for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++) {
    for (int lane = 0; lane < threads; lane++) {
      getcontext(&lanes[lane]);
      lanes[lane].uc_stack.ss_sp = stacks + lane * size;
      lanes[lane].uc_stack.ss_size = size;
      lanes[lane].uc_link = &host;
      makecontext(&lanes[lane], program, 0);
      waits[lane] = nowhere;
    }
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (int w = 0; w < threads / 32; w++) {
        const int first = (order ? threads / 32 - 1 - w : w) * 32;
        while (waits[first] < in_block) {
          for (int k = 0; k < 32; k++) {
            threadIdx.x = first + (order ? 31 - k : k);
            waits[threadIdx.x] = done;
            swapcontext(&host, &lanes[threadIdx.x]);
          }
        }
        goes_on |= waits[first] == in_block;
      }
      for (int lane = 0; lane < threads; lane++) {
        if (waits[lane] == in_block) waits[lane] = nowhere;
      }
    }
  }
}
