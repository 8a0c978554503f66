// What emitted code calls: arithmetic as XLA defines it, and reductions over a block's threads.
#define FN static __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define EVERY 0xffffffffu
namespace js {
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;

template <class To, class From> FN To bits_of(From x) {
  static_assert(sizeof(To) == sizeof(From), "of one width");
  To to;
  memcpy(&to, &x, sizeof x);
  return to;
}

// Signed overflow wraps around.
template <class V> struct Wrapping { typedef V type; };
template <> struct Wrapping<int> { typedef unsigned type; };
template <> struct Wrapping<int64_t> { typedef uint64_t type; };
template <> struct Wrapping<int16_t> { typedef uint16_t type; };
template <> struct Wrapping<int8_t> { typedef uint8_t type; };
#define W typename Wrapping<V>::type
template <class V> FN W unsigned_of(V a) { return (W)a; }
template <class V> FN V add(V a, V b) { return (V)((W)a + (W)b); }
template <class V> FN V sub(V a, V b) { return (V)((W)a - (W)b); }
template <class V> FN V mul(V a, V b) { return (V)((W)a * (W)b); }
template <class V> FN V neg(V a) { return (V)(-(W)a); }
#undef W
FN bool add(bool a, bool b) { return a || b; }
FN bool mul(bool a, bool b) { return a && b; }

// Of integers, by zero: all bits; the least one by -1: itself.
template <class V> FN V div(V a, V b) {
  if (b == 0) return (V)-1;
  return (V)-1 < 0 && b == (V)-1 ? neg(a) : (V)(a / b);
}
FN float div(float a, float b) { return a / b; }
FN double div(double a, double b) { return a / b; }
template <class V> FN V rem(V a, V b) {
  if (b == 0) return a;
  return (V)-1 < 0 && b == (V)-1 ? (V)0 : (V)(a % b);
}
FN float rem(float a, float b) { return fmodf(a, b); }
FN double rem(double a, double b) { return fmod(a, b); }

// NaN wins.
template <class V> FN V min(V a, V b) { return a < b || a != a ? a : b; }
template <class V> FN V max(V a, V b) { return a > b || a != a ? a : b; }
// The same in all lanes, of 0 and -0.
FN float min(float a, float b) {
  return a < b || a != a || (a == b && bits_of<int>(a) < 0) ? a : b;
}
FN float max(float a, float b) {
  return a > b || a != a || (a == b && bits_of<int>(a) >= 0) ? a : b;
}
template <class V> FN V clamp(V low, V a, V high) { return min(max(a, low), high); }

template <class V> FN V shift_left(V a, V by) {
  return (uint64_t)by < 8 * sizeof a ? (V)((uint64_t)a << by) : (V)0;
}
template <class V> FN V shift_right_logical(V a, V by) {
  return (uint64_t)by < 8 * sizeof a ? (V)(unsigned_of(a) >> by) : (V)0;
}
template <class V> FN V shift_right_arithmetic(V a, V by) {
  const V far = (uint64_t)by < 8 * sizeof a ? by : (V)(8 * sizeof a - 1);
  const bool is_filled = (V)-1 > 0 && a >> (8 * sizeof a - 1);  // an unsigned one, by ones
  return is_filled ? (V)~((V)~a >> far) : (V)(a >> far);
}

// An index as an int, the nearest one: those beyond are beyond any array.
template <class V> FN int index_of(V a) {
  if ((V)(int)a == a && ((int)a < 0) == (a < 0)) return (int)a;
  return a < 0 ? -2147483647 - 1 : 2147483647;
}

template <class V> FN V sign(V a) { return (V)((a > (V)0) - (a < (V)0)); }
FN float sign(float a) { return a != a || a == 0 ? a : a > 0 ? 1.f : -1.f; }
FN double sign(double a) { return a != a || a == 0 ? a : a > 0 ? 1. : -1.; }
template <class V> FN V abs_of(V a) { return a < (V)0 ? neg(a) : a; }
FN float abs_of(float a) { return fabsf(a); }
FN double abs_of(double a) { return fabs(a); }
template <class V> FN V square(V a) { return mul(a, a); }

template <class V> FN V population_count(V a) {
  return (V)(sizeof a > 4 ? __popcll(unsigned_of(a)) : __popc(unsigned_of(a)));
}
template <class V> FN V clz(V a) {
  const int rest = 32 - 8 * (int)sizeof a;
  return (V)(rest < 0 ? __clzll(unsigned_of(a)) : __clz(unsigned_of(a)) - rest);
}

// A float as an integer: the nearest towards zero, held within the type; 0 for NaN.
template <class V, class F> FN V whole(F x) {
  const int digits = 8 * (int)sizeof(V) - ((V)-1 < 0);
  const F beyond = (F)2 * (F)((uint64_t)1 << (digits - 1));
  const V most = (V)(~(uint64_t)0 >> (64 - digits));
  if (!(x < beyond)) return x != x ? (V)0 : most;
  if ((V)-1 < 0) return x < -beyond ? (V)(-most - 1) : (V)x;
  return x > 0 ? (V)x : (V)0;
}

FN float root(float a) { return sqrtf(a); }
FN double root(double a) { return sqrt(a); }
#define FLOAT_FUNCTION(name) \
  FN float name##_of(float a) { return name##f(a); } \
  FN double name##_of(double a) { return name(a); }
FLOAT_FUNCTION(exp) FLOAT_FUNCTION(exp2) FLOAT_FUNCTION(log) FLOAT_FUNCTION(log1p)
FLOAT_FUNCTION(expm1) FLOAT_FUNCTION(floor) FLOAT_FUNCTION(ceil) FLOAT_FUNCTION(sin)
FLOAT_FUNCTION(cos) FLOAT_FUNCTION(tanh) FLOAT_FUNCTION(rint) FLOAT_FUNCTION(round)
FN float pow_of(float a, float b) { return powf(a, b); }
FN double pow_of(double a, double b) { return pow(a, b); }

struct Min { template <class V> FN V of(V a, V b) { return min(a, b); } };
struct Max { template <class V> FN V of(V a, V b) { return max(a, b); } };
struct Sum { template <class V> FN V of(V a, V b) { return add(a, b); } };
struct Product { template <class V> FN V of(V a, V b) { return mul(a, b); } };
struct And { template <class V> FN V of(V a, V b) { return (V)(a & b); } };
struct Or { template <class V> FN V of(V a, V b) { return (V)(a | b); } };
struct Xor { template <class V> FN V of(V a, V b) { return (V)(a ^ b); } };

template <class V> FN V from_lane(V x, int lane) { return __shfl_sync(EVERY, x, lane); }
FN bool from_lane(bool x, int lane) { return __shfl_sync(EVERY, (int)x, lane); }
template <class V> FN V from_other(V x, int mask) { return __shfl_xor_sync(EVERY, x, mask); }
FN bool from_other(bool x, int mask) { return __shfl_xor_sync(EVERY, (int)x, mask); }

// Of GROUP threads next to one another, at most a warp.
template <class Op, int GROUP> struct InWarp {
  template <class V> FN V of(V x) {
    UNROLL for (int far = GROUP / 2; far; far /= 2) x = Op::of(x, from_other(x, far));
    return x;
  }
};
#if __CUDA_ARCH__ >= 800
#define IN_ONE_INSTRUCTION(Op, name) \
  template <> struct InWarp<Op, 32> { \
    FN int of(int x) { return name(EVERY, x); } \
    FN unsigned of(unsigned x) { return name(EVERY, x); } \
    FN bool of(bool x) { return name(EVERY, (unsigned)x) != 0; } \
    template <class V> FN V of(V x) { \
      UNROLL for (int far = 16; far; far /= 2) x = Op::of(x, from_other(x, far)); \
      return x; \
    } \
  };
IN_ONE_INSTRUCTION(Min, __reduce_min_sync) IN_ONE_INSTRUCTION(Max, __reduce_max_sync)
IN_ONE_INSTRUCTION(Sum, __reduce_add_sync)
#endif

// Of GROUP threads next to one another: a power of two. What warps found goes through one of two
// places in turn: whoever writes there again has passed a barrier since all have read it.
template <class Op, int GROUP, class V> FN V reduce(V x, int t, void* exchange, int& turn) {
  x = InWarp<Op, GROUP < 32 ? GROUP : 32>::of(x);
  if (GROUP <= 32) return x;
  V* const found = (V*)((char*)exchange + turn);
  turn ^= 256;
  if (t % 32 == 0) found[t / 32] = x;
  __syncthreads();
  const int first = t / GROUP * (GROUP / 32);
  x = found[first];
  UNROLL for (int warp = 1; warp < GROUP / 32; warp++) x = Op::of(x, found[first + warp]);
  return x;
}

// Of the last of GROUP threads.
template <int GROUP, class V> FN V last(V x, int t, void* exchange, int& turn) {
  if (GROUP <= 32) return from_lane(x, t % 32 / GROUP * GROUP + GROUP - 1);
  V* const found = (V*)((char*)exchange + turn);
  turn ^= 256;
  if (t % GROUP == GROUP - 1) found[t / GROUP] = x;
  __syncthreads();
  return found[t / GROUP];
}

// The sum up to a thread's own among GROUP threads next to one another.
template <int GROUP, class V> FN V scan(V x, int t, void* exchange, int& turn) {
  UNROLL for (int far = 1; far < (GROUP < 32 ? GROUP : 32); far *= 2) {
    const V other = __shfl_up_sync(EVERY, x, far);
    if (t % (GROUP < 32 ? GROUP : 32) >= far) x = add(x, other);
  }
  if (GROUP <= 32) return x;
  V* const found = (V*)((char*)exchange + turn);
  turn ^= 256;
  if (t % 32 == 31) found[t / 32] = x;
  __syncthreads();
  UNROLL for (int warp = 0; warp < GROUP / 32 - 1; warp++) {
    if (warp < t % GROUP / 32) x = add(found[t / GROUP * (GROUP / 32) + warp], x);
  }
  return x;
}
