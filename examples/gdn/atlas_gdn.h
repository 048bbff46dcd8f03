/* Gated delta rule prefill on packed buffers: the C ABI of libatlasgdn.so.
 *
 * For each value head h, with key head g = h / (nv / nk), a state S of kd x vd numbers and, for t = 0 .. T-1:
 *
 *     S   = alpha[t,h] * S
 *     S   = S + beta[t,h] * k[t,g] (v[t,h] - S^T k[t,g])^T
 *     o[t,h] = scale * S^T q[t,g]
 *
 * q and k are used as they are given: normalise them first if the model wants that.
 */
#ifndef ATLAS_GDN_H
#define ATLAS_GDN_H

#if defined(__GNUC__)
#define ATLAS_GDN_API __attribute__((visibility("default")))
#else
#define ATLAS_GDN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. One code for each argument, so that a wrong call names its own mistake. */
enum atlas_gdn_status {
    ATLAS_GDN_OK = 0,
    ATLAS_GDN_BAD_QKV = 1,          /* null, or not aligned to 16 bytes */
    ATLAS_GDN_BAD_GATE_BETA = 2,    /* null, or not aligned to 4 bytes */
    ATLAS_GDN_BAD_OUTPUT = 3,       /* null, or not aligned to 16 bytes */
    ATLAS_GDN_BAD_H_STATE = 4,      /* null, or not aligned to 16 bytes */
    ATLAS_GDN_BAD_SCALE = 5,        /* infinite or not a number */
    ATLAS_GDN_BAD_TOTAL_SEQLEN = 6, /* not positive */
    ATLAS_GDN_BAD_NK = 7,           /* not positive */
    ATLAS_GDN_BAD_NV = 8,           /* not a positive multiple of nk */
    ATLAS_GDN_BAD_KD = 9,           /* not 128 */
    ATLAS_GDN_BAD_VD = 10,          /* not 128 */
    ATLAS_GDN_BAD_CONV_DIM = 11,    /* shorter than a row of Q, K and V, or not a multiple of 8 */
    ATLAS_GDN_BAD_GB_STRIDE = 12,   /* shorter than a row of gates and betas */
    ATLAS_GDN_BAD_NUM_SEQS = 13,    /* not 1 */
    ATLAS_GDN_BAD_STREAM = 14,      /* the driver does not know the stream */
    ATLAS_GDN_BAD_DEVICE = 15,      /* the stream's device is not compute capability 9.0 */
    ATLAS_GDN_NEEDS_WARM_UP = 16,   /* the stream is capturing and has no scratch yet: make one call before */
    ATLAS_GDN_OUT_OF_MEMORY = 17,   /* the scratch could not be allocated; the next call tries again */
    ATLAS_GDN_LAUNCH_FAILED = 18,   /* a launch was refused; nothing says how far the call got */
    ATLAS_GDN_BAD_SLOTS = 19        /* atlas_gdn_limit_slots: negative */
};

/* Loads the kernels onto the current device, so that the first call does not pay for it. Call it once. */
ATLAS_GDN_API void atlas_gdn_load(void);

/* One sequence, from packed buffers.
 *
 *   qkv           bf16 [T, conv_dim], rows [Q nk*kd | K nk*kd | V nv*vd], 16-byte aligned; read
 *   gate_beta     fp32 [T, gb_stride], rows [alpha nv | beta nv], alpha linear and in (0, 1]; read
 *   output        bf16 [T, nv*vd], contiguous, 16-byte aligned; written, must not overlap an input
 *   h_state       fp32 [nv, kd, vd], contiguous, 16-byte aligned; the initial state, then the final one
 *   scale         factor of the output
 *   total_seqlen  T, at least 1
 *   nk, nv        key and value heads, nv a multiple of nk
 *   kd, vd        128 and 128
 *   conv_dim      row stride of qkv in elements, a multiple of 8, at least 2*nk*kd + nv*vd
 *   gb_stride     row stride of gate_beta in elements, at least 2*nv
 *   num_seqs      1
 *   stream        a cudaStream_t; the buffers belong to its device
 *
 * Everything is ordered on the stream and the host never waits. The first call on a stream with a given nv
 * also allocates scratch (about 45 MB), kept until the process ends: a CUDA graph may hold its addresses.
 * So before a capture make one call on the capturing stream. A graph uses the scratch of the stream it was
 * captured on: replay it in order with other work of that stream. Calls may come from any thread and for any
 * device.
 *
 * The same arguments on the same device give the same bits.
 */
ATLAS_GDN_API int atlas_gdn_prefill_packed_managed(void *qkv, void *gate_beta, void *output, void *h_state,
                                                   float scale, int total_seqlen, int nk, int nv, int kd,
                                                   int vd, int conv_dim, int gb_stride, int num_seqs,
                                                   void *stream);

/* How many segments of a long sequence may be worked on side by side: 0 lets the library choose (the
 * default), 1 is one after the other, more is an upper bound. For tests and timings; it holds for the whole
 * process. */
ATLAS_GDN_API int atlas_gdn_limit_slots(int slots);

#ifdef __cplusplus
}
#endif
#endif
