/* A plugin of QEMU's user mode that writes each taken branch of a program's first thread.
 *
 * Compile: gcc -O2 -shared -fPIC -o taken_branches.so taken_branches.c
 * Run: qemu-x86_64 -plugin ./taken_branches.so,out=FILE COMMAND (or qemu-aarch64)
 *
 * FILE gets pairs of 64-bit words, in the machine's byte order. The first pair is the address of
 * the program's first code segment, and 0. Each other pair is a branch: the address of the branch
 * and, in its upper 16 bits, how many instructions ran since the branch before it, with the branch
 * itself (65535 stands for at least as many); then the destination.
 *
 * A block of QEMU ends with a branch, or it was too long, or the next page begins. So a branch was
 * taken where the next block does not begin behind this one, or where the branch is always taken.
 * If the next one begins with the last instruction of this one, nothing was taken: a string
 * instruction repeats itself, or QEMU undid an instruction that reaches into the next page. The
 * declarations follow the plugin interface, version 1.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void on_translation(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void on_execution(unsigned, void *);
typedef void on_exit_of_all(qemu_plugin_id_t, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, on_translation *);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, on_execution *, int, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, on_exit_of_all *, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_start_code(void);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

struct block {
    uint64_t start, last, end, instructions;
    int always;
};

static struct block blocks[1 << 20], *before;
static size_t known, buffered;
static uint64_t instructions, buffer[1 << 16];
static int out = -1, is_aarch64;

static void flush(void)
{
    const char *from = (const char *)buffer;
    size_t left = buffered * sizeof *buffer;
    while (left > 0) {
        ssize_t written = write(out, from, left);
        if (written <= 0)
            _exit(0);
        from += written;
        left -= written;
    }
    buffered = 0;
}

static void put(uint64_t from, uint64_t count, uint64_t to)
{
    if (buffered == sizeof buffer / sizeof *buffer)
        flush();
    buffer[buffered++] = from | (count < 65535 ? count : 65535) << 48;
    buffer[buffered++] = to;
}

static void executed(unsigned processor, void *data)
{
    struct block *block = data;
    if (processor != 0)
        return;
    if (before == 0) {
        put(qemu_plugin_start_code(), 0, 0);
    } else {
        instructions += before->instructions;
        if (block->start == before->last) {
            instructions--;
        } else if (block->start != before->end || before->always) {
            put(before->last, instructions, block->start);
            instructions = 0;
        }
    }
    before = block;
}

/* Whether code is a jump, a call or a return that is always taken. */
static int always_taken(const unsigned char *code, size_t size)
{
    if (is_aarch64) /* b and bl; br, blr and ret. */
        return (code[3] & 0x7c) == 0x14 || code[3] >> 1 == 0xd6 >> 1;
    /* Prefixes: segments and operand size, repetition, REX. */
    while (size > 1 && (*code == 0x3e || *code == 0x66 || *code == 0xf2 || *code == 0xf3 ||
                        *code >> 4 == 4))
        code++, size--;
    switch (*code) {
    case 0xe8: case 0xe9: case 0xeb: case 0xc2: case 0xc3:
        return 1;
    case 0xff: /* Calls are 2 and 3, jumps 4 and 5. */
        return size > 1 && (code[1] >> 3 & 7) >= 2 && (code[1] >> 3 & 7) <= 5;
    }
    return 0;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t count = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
    struct block *block = &blocks[known];
    if (known + 1 < sizeof blocks / sizeof *blocks)
        known++;
    block->start = qemu_plugin_insn_vaddr(first);
    block->last = qemu_plugin_insn_vaddr(last);
    block->end = block->last + qemu_plugin_insn_size(last);
    block->instructions = count;
    block->always = always_taken(qemu_plugin_insn_data(last), qemu_plugin_insn_size(last));
    qemu_plugin_register_vcpu_tb_exec_cb(tb, executed, 0, block);
}

static void ended(qemu_plugin_id_t id, void *data)
{
    flush();
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **arguments)
{
    /* The name of the processor comes first. */
    is_aarch64 = strcmp(*(const char *const *)info, "aarch64") == 0;
    for (int i = 0; i < count; i++)
        if (strncmp(arguments[i], "out=", 4) == 0)
            out = open(arguments[i] + 4, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (out < 0)
        return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, 0);
    return 0;
}
