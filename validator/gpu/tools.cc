#include "validator/gpu/tools.h"

namespace assay::gpu {

// %r0 to %r3, %d2, %d3 in the kernels that walk: the thread's number and the number of threads.
const char* const kToolsPtx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry canary(.param .u64 at) {
.reg .b64 %d<4>; .reg .b32 %r<4>;
ld.param.u64 %d0, [at];
cvta.to.global.u64 %d1, %d0;
mov.u32 %r0, %tid.x;
mul.wide.u32 %d2, %r0, 4;
add.u64 %d3, %d1, %d2;
ld.global.u32 %r1, [%d3];
mad.lo.u32 %r2, %r1, 3, %r0;
st.global.u32 [%d3], %r2;
ret;
}

.visible .entry nothing() {
ret;
}

.visible .entry sweep(.param .u64 at, .param .u64 words) {
.reg .pred %p<2>; .reg .b64 %d<6>; .reg .b32 %r<12>;
ld.param.u64 %d0, [at];
ld.param.u64 %d1, [words];
cvta.to.global.u64 %d0, %d0;
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r0, %r1, %r2;
cvt.u64.u32 %d2, %r3;
mov.u32 %r0, %nctaid.x;
mul.lo.u32 %r3, %r0, %r1;
cvt.u64.u32 %d3, %r3;
mov.u32 %r4, 0;
$sweep_next:
setp.ge.u64 %p0, %d2, %d1;
@%p0 bra $sweep_end;
shl.b64 %d4, %d2, 4;
add.u64 %d5, %d0, %d4;
ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d5];
xor.b32 %r4, %r4, %r5;
xor.b32 %r4, %r4, %r6;
xor.b32 %r4, %r4, %r7;
xor.b32 %r4, %r4, %r8;
add.u64 %d2, %d2, %d3;
bra $sweep_next;
$sweep_end:
setp.eq.u32 %p1, %r4, 2654435769;
@%p1 st.global.u32 [%d0], %r4;
ret;
}

.visible .entry noise(.param .u64 at, .param .u64 words, .param .u32 keep, .param .u32 set) {
.reg .pred %p<2>; .reg .b64 %d<6>; .reg .b32 %r<12>;
ld.param.u64 %d0, [at];
ld.param.u64 %d1, [words];
ld.param.u32 %r8, [keep];
ld.param.u32 %r9, [set];
cvta.to.global.u64 %d0, %d0;
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r0, %r1, %r2;
cvt.u64.u32 %d2, %r3;
mov.u32 %r0, %nctaid.x;
mul.lo.u32 %r3, %r0, %r1;
cvt.u64.u32 %d3, %r3;
$noise_next:
setp.ge.u64 %p0, %d2, %d1;
@%p0 bra $noise_end;
cvt.u32.u64 %r4, %d2;
mul.lo.u32 %r4, %r4, 2654435761;
shr.u32 %r5, %r4, 15;
xor.b32 %r4, %r4, %r5;
mul.lo.u32 %r4, %r4, 2246822507;
shr.u32 %r5, %r4, 13;
xor.b32 %r4, %r4, %r5;
and.b32 %r4, %r4, %r8;
or.b32 %r4, %r4, %r9;
shl.b64 %d4, %d2, 2;
add.u64 %d5, %d0, %d4;
st.global.u32 [%d5], %r4;
add.u64 %d2, %d2, %d3;
bra $noise_next;
$noise_end:
ret;
}

.visible .entry hog(.param .u64 at, .param .u64 words, .param .u64 nanoseconds) {
.reg .pred %p<3>; .reg .b64 %d<10>; .reg .b32 %r<12>;
ld.param.u64 %d0, [at];
ld.param.u64 %d1, [words];
ld.param.u64 %d6, [nanoseconds];
cvta.to.global.u64 %d0, %d0;
mov.u64 %d7, %globaltimer;
add.u64 %d7, %d7, %d6;
mov.u32 %r0, %ctaid.x;
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %tid.x;
mad.lo.u32 %r3, %r0, %r1, %r2;
mov.u32 %r0, %nctaid.x;
mul.lo.u32 %r4, %r0, %r1;
cvt.u64.u32 %d3, %r4;
$hog_again:
mov.u64 %d8, %globaltimer;
setp.ge.u64 %p1, %d8, %d7;
@%p1 bra $hog_end;
cvt.u64.u32 %d2, %r3;
$hog_next:
setp.ge.u64 %p0, %d2, %d1;
@%p0 bra $hog_again;
shl.b64 %d4, %d2, 4;
add.u64 %d5, %d0, %d4;
ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d5];
add.u32 %r5, %r5, 1;
st.global.v4.u32 [%d5], {%r5, %r6, %r7, %r8};
add.u64 %d2, %d2, %d3;
bra $hog_next;
$hog_end:
ret;
}

.visible .entry occupy(.param .u64 nanoseconds) {
.reg .pred %p<2>; .reg .b64 %d<4>;
ld.param.u64 %d0, [nanoseconds];
mov.u64 %d1, %globaltimer;
add.u64 %d1, %d1, %d0;
$occupy_again:
mov.u64 %d2, %globaltimer;
setp.lt.u64 %p0, %d2, %d1;
@%p0 bra $occupy_again;
ret;
}
)";

}  // namespace assay::gpu
