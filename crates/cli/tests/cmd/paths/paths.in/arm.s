// The program of app.s for AArch64. Built with: aarch64-linux-gnu-gcc -g -nostdlib -static -no-pie
//     -Wl,-n,--build-id=0x0123456789abcdef -Wa,--debug-prefix-map=$PWD=/src -o arm arm.s
.globl _start
.type _start, %function
_start: mov w19, #1000
.Lagain: bl work
        subs w19, w19, #1
        b.ne .Lagain
        mov x8, #93
        mov w0, #0
        svc #0
.size _start, . - _start

// Adds up to 12 numbers: 3 for an odd one, 5 for an even one; each third one is squared.
.globl work
.type work, %function
work:   mov w1, #12
        mov w2, #3
.Lnext: tbz w1, #0, .Leven
        add w0, w0, #3
        b .Lthird
.Leven: add w0, w0, #5
.Lthird: subs w2, w2, #1
        b.ne .Lstep
        mov w2, #3
        mul w0, w0, w0
.Lstep: sub w1, w1, #1
        cbnz w1, .Lnext
        ret
.size work, . - work
