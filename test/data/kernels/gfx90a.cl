// SPDX-License-Identifier: GPL-2.0-only
// Kernels for the emulated GPU: what clang makes of them is in gfx90a.txt, see make-listing.
#define GLOBAL_ID(dim) (__builtin_amdgcn_workgroup_id_##dim() * 64 + __builtin_amdgcn_workitem_id_##dim())

kernel void add(global uint *sum, const global uint *a, const global uint *b, uint n)
{
	uint i = GLOBAL_ID(x);
	if (i < n) sum[i] = a[i] + b[i];
}
kernel void count(global ulong *cells, ulong rounds)
{
	uint i = GLOBAL_ID(x);
	ulong sum = cells[i];
	for (ulong r = 0; r < rounds; r++)
		sum = sum * 6364136223846793005ul + r + i;
	cells[i] = sum;
}
kernel void reduce(global uint *total, const global uint *in, uint n)
{
	local uint part[256];
	uint id = __builtin_amdgcn_workitem_id_x();
	uint i = __builtin_amdgcn_workgroup_id_x() * 256 + id;
	part[id] = i < n ? in[i] : 0;
	for (uint step = 128; step; step >>= 1) {
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
		__builtin_amdgcn_s_barrier();
		__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
		if (id < step) part[id] += part[id + step];
	}
	if (id == 0) __atomic_fetch_add(total, part[0], __ATOMIC_RELAXED);
}
kernel void hash(global uint *out, const global uchar *text, uint length)
{
	uint i = GLOBAL_ID(x);
	uint h = 2166136261u ^ i;
	for (uint k = 0; k < length; k++) {
		h = (h ^ text[k]) * 16777619u;
		if (h & 1) h = (h << 7 | h >> 25) + (i % 3 == 0 ? 5 : __builtin_popcount(h));
	}
	out[i] = h;
}
kernel void divide(global uint *q, global uint *r, const global uint *a, const global uint *b)
{
	uint i = GLOBAL_ID(x);
	q[i] = a[i] / b[i];
	r[i] = a[i] % b[i];
}
kernel void signs(global int *out, const global short *s, const global char *c, global long *l)
{
	uint i = GLOBAL_ID(x);
	out[i] = s[i] * c[i] - (s[i] >> 3);
	l[i] = (l[i] >> (i & 63)) * (long)s[i] < 0 ? -l[i] : l[i] ^ c[i];
}
kernel void grid(global uint *out, uint width, uint height)
{
	uint x = __builtin_amdgcn_workgroup_id_x() * 8 + __builtin_amdgcn_workitem_id_x();
	uint y = __builtin_amdgcn_workgroup_id_y() * 8 + __builtin_amdgcn_workitem_id_y();
	uint z = __builtin_amdgcn_workgroup_id_z() * 2 + __builtin_amdgcn_workitem_id_z();
	out[(z * height + y) * width + x] = x | y << 8 | z << 16;
}
// The later a wave, the longer it takes to the barrier; then each item takes what another wave has put there.
kernel void uneven(global uint *out)
{
	local uint part[256];
	uint id = __builtin_amdgcn_workitem_id_x(), value = id;
	for (uint i = 0; i < __builtin_amdgcn_readfirstlane(id); i++)
		value = value * 3 + 1;
	part[id] = value;
	__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
	__builtin_amdgcn_s_barrier();
	__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
	out[id] = part[255 - id];
}
// Items of two waves exchange values in each round. control has the rounds done, how many are wanted, and the starts.
kernel void march(global ulong *cells, volatile global uint *control)
{
	local ulong part[256];
	local uint wanted;
	uint id = __builtin_amdgcn_workitem_id_x(), round = 0, last;
	ulong value = cells[id];
	if (id == 0) control[2] = control[2] + 1;
	do {
		part[id] = value;
		if (id == 0) wanted = control[1];
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
		__builtin_amdgcn_s_barrier();
		__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
		value = part[id ^ 65] * 6364136223846793005ul + round;
		last = wanted;
		__builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
		__builtin_amdgcn_s_barrier();
		__builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
		round++;
		if (id == 0) control[0] = round;
	} while (round < last);
	cells[id] = value;
}
// An array in private memory.
kernel void turn(global uint *out, const global uint *in, uint rounds)
{
	uint i = GLOBAL_ID(x), at = in[i] & 15;
	volatile uint part[16];
	for (uint k = 0; k < 16; k++) part[k] = in[(i + k) & 63] + k;
	for (uint k = 0; k < rounds; k++) {
		part[at] += k * i;
		at = part[(at + 5) & 15] & 15;
	}
	out[i] = part[at] + at;
}
