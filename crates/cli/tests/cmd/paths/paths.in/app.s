# Built with: cc -g -nostdlib -static -no-pie -Wl,-n,--build-id=none \
#     -Wa,--debug-prefix-map=$PWD=/src -o app app.s
.globl _start
.type _start, @function
_start: mov $1000, %ebx
.Lagain: call work
        dec %ebx
        jnz .Lagain
        mov $60, %eax
        xor %edi, %edi
        syscall
.size _start, . - _start

# Adds up to 12 numbers: 3 for an odd one, 5 for an even one; each third one is squared.
.globl work
.type work, @function
work:   mov $12, %ecx
        mov $3, %edx
.Lnext: test $1, %cl
        jz .Leven
        add $3, %eax
        jmp .Lthird
.Leven: add $5, %eax
.Lthird: dec %edx
        jnz .Lstep
        mov $3, %edx
        imul %eax, %eax
.Lstep: dec %ecx
        jnz .Lnext
        ret
.size work, . - work
