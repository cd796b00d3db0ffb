// SPDX-License-Identifier: GPL-2.0-only
/* amdgpu finds the image in the ROM BAR (amdgpu_bios.c), and its tables by way of the ATOM header
 * (atom.c, amdgpu_atomfirmware.c). Numbers are those of an MI210 where they can be seen in user
 * space, and otherwise such that the driver accepts them. */
#include "vbios.h"

#include <string.h>

#define __counted_by(member)
#include <atomfirmware.h>

#include "asic.h"
#include "pci.h"

/* Places that atom.c and the PCI firmware specification fix. */
enum {
	AT_RETURN = 0x03,
	AT_PCI = 0x18,
	AT_NUM_STRINGS = 0x2f,
	AT_SIGNATURE = 0x30,
	AT_HEADER = 0x48,
	AT_DATE = 0x50,
	AT_STRINGS = 0x6e,
};

/* Places of this image. */
enum { STRINGS = 0x100, PCI_DATA = 0x180, VERSION = 0x1a0, TABLES = 0x200 };

#define RET_FAR       0xcb
#define CODE_FOR_NONE 0xff /* SeaBIOS passes over an image of this type */
#define LAST_IMAGE    0x80
#define CLOCK_10KHZ   10000 /* ASIC_CLOCK_HZ */

struct pci_data {
	char signature[4];
	uint16_t vendor, device, reserved1, length;
	uint8_t revision, class_code[3];
	uint16_t blocks, code_revision;
	uint8_t code_type, indicator;
	uint16_t runtime_blocks;
} __attribute__((packed));
/* Linux 6.12.118 refuses shorter ones (drivers/pci/rom.c). */
_Static_assert(sizeof(struct pci_data) == 24, "PCI data structure");

struct writer {
	uint8_t *rom;
	uint16_t at;
};

static void put16(uint8_t *to, uint16_t value)
{
	memcpy(to, &value, sizeof(value));
}

static void *add_table(struct writer *writer, uint16_t size_bytes, uint8_t format, uint8_t content,
		       uint16_t *ret_offset)
{
	struct atom_common_table_header *table = (void *)(writer->rom + writer->at);

	table->structuresize = size_bytes;
	table->format_revision = format;
	table->content_revision = content;
	*ret_offset = writer->at;
	writer->at += (size_bytes + 15) & ~15;
	return table;
}

static void add_firmware(struct writer *writer, uint16_t *ret_offset)
{
	struct atom_firmware_info_v3_4 *info = add_table(writer, sizeof(*info), 3, 4, ret_offset);

	info->firmware_revision = 1;
	info->bootup_sclk_in10khz = 30000;
	info->bootup_mclk_in10khz = 160000;
	info->bios_scratch_reg_startaddr = REG(NBIO, mmBIOS_SCRATCH_0);
}

/* 4096 bits of HBM2E */
static void add_vram(struct writer *writer, uint16_t *ret_offset)
{
	struct atom_vram_info_header_v2_6 *info =
		add_table(writer, sizeof(*info), 2, 6, ret_offset);

	info->vram_module_num = 1;
	info->vram_module[0].memory_type = ATOM_DGPU_VRAM_TYPE_HBM2E;
	info->vram_module[0].channel_num = 64;
	info->vram_module[0].channel_width = 6;
	info->vram_module[0].vram_module_size = sizeof(info->vram_module[0]);
}

static void add_graphics(struct writer *writer, uint16_t *ret_offset)
{
	struct atom_gfx_info_v2_7 *info = add_table(writer, sizeof(*info), 2, 7, ret_offset);

	info->max_shader_engines = 8;
	info->max_sh_per_se = 1;
	info->max_cu_per_sh = 16;
	info->max_backends_per_se = 4;
	info->max_texture_channel_caches = 16;
	info->gc_num_gprs = 512;
	info->gc_num_max_gs_thds = 32;
	info->gc_gs_table_depth = 32;
	info->gc_gsprim_buff_depth = 1792;
	info->gc_double_offchip_lds_buffer = 1;
	info->gc_wave_size = 64;
	info->gc_max_waves_per_simd = 8;
	info->gc_max_scratch_slots_per_cu = 32;
	info->gc_lds_size = 64;
}

static void add_clocks(struct writer *writer, struct atom_master_data_table_v2_1 *data)
{
	struct atom_smu_info_v3_1 *smu =
		add_table(writer, sizeof(*smu), 3, 1, &data->listOfdatatables.smu_info);
	struct atom_umc_info_v3_1 *umc =
		add_table(writer, sizeof(*umc), 3, 1, &data->listOfdatatables.umc_info);

	smu->core_refclk_10khz = CLOCK_10KHZ;
	umc->mem_refclk_10khz = CLOCK_10KHZ;
}

/* The table of commands is empty: the driver runs none, because the board is initialised. */
static void add_tables(uint8_t *rom)
{
	struct writer writer = { rom, TABLES };
	struct atom_rom_header_v2_2 *header;
	struct atom_master_data_table_v2_1 *data;
	uint16_t offset;

	header = add_table(&writer, sizeof(*header), 2, 2, &offset);
	put16(rom + AT_HEADER, offset);
	memcpy(header->atom_bios_string, "ATOM", 4);
	data = add_table(&writer, sizeof(*data), 2, 1, &header->masterdatatable_offset);
	(void)add_table(&writer, sizeof(struct atom_master_command_function_v2_1), 2, 1,
			&header->masterhwfunction_offset);
	add_firmware(&writer, &data->listOfdatatables.firmwareinfo);
	add_vram(&writer, &data->listOfdatatables.vram_info);
	add_graphics(&writer, &data->listOfdatatables.gfx_info);
	add_clocks(&writer, data);
}

static void add_head(const struct asic *asic, uint8_t *rom)
{
	static const char version[] = "ATOMBIOSBK-AMD VER000.000.000.001.000000";
	const struct pci_data pci = { .signature = "PCIR",
				      .vendor = ASIC_VENDOR_ID,
				      .device = asic->device_id,
				      .length = sizeof(pci),
				      .class_code = { 0, asic->class_code >> 8 & 0xff,
						      asic->class_code >> 16 },
				      .blocks = PCI_ROM_BYTES / 512,
				      .code_type = CODE_FOR_NONE,
				      .indicator = LAST_IMAGE };

	rom[0] = 0x55;
	rom[1] = 0xaa;
	rom[2] = PCI_ROM_BYTES / 512;
	rom[AT_RETURN] = RET_FAR;
	put16(rom + AT_PCI, PCI_DATA);
	memcpy(rom + PCI_DATA, &pci, sizeof(pci));
	rom[AT_NUM_STRINGS] = 4;
	memcpy(rom + AT_SIGNATURE, " 761295520", 10);
	memcpy(rom + AT_DATE, "11/25/26 19:00", 14);
	put16(rom + AT_STRINGS, STRINGS);
	memcpy(rom + STRINGS, asic->vbios_strings, asic->vbios_strings_bytes);
	memcpy(rom + VERSION, version, sizeof(version));
}

void vbios_make(const struct asic *asic, uint8_t *rom)
{
	uint8_t sum = 0;
	uint32_t i;

	add_head(asic, rom);
	add_tables(rom);
	for (i = 0; i < PCI_ROM_BYTES; i++)
		sum += rom[i];
	rom[PCI_ROM_BYTES - 1] = -sum;
}
