// SPDX-License-Identifier: GPL-2.0-only
#include "ip_discovery.h"

#include <string.h>

#define __packed __attribute__((packed))
#define DECLARE_FLEX_ARRAY(type, name) \
	struct {                       \
		char empty_##name[0];  \
		type name[];           \
	}
#include <discovery.h>

#include "asic.h"

#define VERSION 3 /* instances have a sub-revision */
/* That of the NBIO is the revision of the chip for the driver. */
#define SUB_REVISION 1

struct writer {
	uint8_t *table;
	uint16_t at;
};

static void *add(struct writer *writer, size_t size_bytes)
{
	void *at = writer->table + writer->at;

	writer->at += size_bytes;
	return at;
}

static uint16_t sum_of(const void *data, size_t size_bytes)
{
	const uint8_t *bytes = data;
	uint16_t sum = 0;
	size_t i;

	for (i = 0; i < size_bytes; i++)
		sum += bytes[i];
	return sum;
}

/* The driver verifies the sum of each table, and that of all. */
static void note_table(struct writer *writer, unsigned int index, uint16_t offset)
{
	struct binary_header *head = (void *)writer->table;
	struct table_info *info = &head->table_list[index];

	info->offset = offset;
	info->size = writer->at - offset;
	info->checksum = sum_of(writer->table + offset, info->size);
}

static void add_instance(struct writer *writer, const struct discovery_block *block, unsigned int i)
{
	unsigned int base;
	ip_v3 *ip = add(writer, sizeof(*ip) + sizeof(uint32_t) * block->num_bases);

	ip->hw_id = block->hw_id;
	ip->instance_number = block->first + i * block->step;
	ip->num_base_address = block->num_bases;
	ip->major = block->major;
	ip->minor = block->minor;
	ip->revision = block->revision;
	ip->sub_revision = SUB_REVISION;
	for (base = 0; base < block->num_bases; base++)
		ip->base_address[base] = block->bases[base] + (i << ASIC_INSTANCE_SHIFT);
}

static void add_blocks(struct writer *writer, const struct discovery_block *blocks,
		       size_t num_blocks)
{
	uint16_t offset = writer->at;
	ip_discovery_header *head = add(writer, sizeof(*head));
	die_header *die;
	unsigned int i;
	size_t block;

	head->signature = DISCOVERY_TABLE_SIGNATURE;
	head->version = VERSION;
	head->num_dies = 1;
	head->die_info[0].die_offset = writer->at;
	die = add(writer, sizeof(*die));
	for (block = 0; block < num_blocks; block++) {
		die->num_ips += blocks[block].instances;
		for (i = 0; i < blocks[block].instances; i++)
			add_instance(writer, &blocks[block], i);
	}
	head->size = writer->at - offset;
	note_table(writer, IP_DISCOVERY, offset);
}

static void add_compute(struct writer *writer, const struct discovery_compute *compute)
{
	uint16_t offset = writer->at;
	struct gc_info_v2_0 *info = add(writer, sizeof(*info));

	info->header.table_id = GC_TABLE_ID;
	info->header.version_major = 2;
	info->header.size = sizeof(*info);
	info->gc_num_se = compute->shader_engines;
	info->gc_num_cu_per_sh = compute->cus_per_engine;
	info->gc_num_sh_per_se = 1;
	info->gc_num_rb_per_se = 4;
	info->gc_num_tccs = 16;
	info->gc_num_gprs = 512;
	info->gc_num_max_gs_thds = 32;
	info->gc_gs_table_depth = 32;
	info->gc_gsprim_buff_depth = 1792;
	info->gc_double_offchip_lds_buffer = 1;
	info->gc_wave_size = 64;
	info->gc_max_waves_per_simd = 8;
	info->gc_max_scratch_slots_per_cu = 32;
	info->gc_lds_size = 64;
	info->gc_num_sc_per_se = 1;
	info->gc_num_packer_per_sc = 1;
	note_table(writer, GC, offset);
}

/* Nothing is harvested, but the driver wants the table. */
static void add_harvest(struct writer *writer)
{
	uint16_t offset = writer->at;
	harvest_table *table = add(writer, sizeof(*table));

	table->header.signature = HARVEST_TABLE_SIGNATURE;
	note_table(writer, HARVEST_INFO, offset);
}

void discovery_write(uint8_t *table, const struct discovery_block *blocks, size_t num_blocks,
		     const struct discovery_compute *compute)
{
	struct writer writer = { .table = table };
	struct binary_header *head;
	size_t begin;

	memset(table, 0, DISCOVERY_BYTES);
	head = add(&writer, sizeof(*head));
	head->binary_signature = BINARY_SIGNATURE;
	head->version_major = 1;
	add_blocks(&writer, blocks, num_blocks);
	add_compute(&writer, compute);
	add_harvest(&writer);
	head->binary_size = writer.at;
	begin = offsetof(struct binary_header, binary_checksum) + sizeof(head->binary_checksum);
	head->binary_checksum = sum_of(table + begin, writer.at - begin);
}
