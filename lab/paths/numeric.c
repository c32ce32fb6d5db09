/* Numeric kernels: LU factors with pivots, a Fourier transform, lengths of Collatz sequences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define N 160
#define POINTS 4096

static double a[N][N], re[POINTS], im[POINTS];

static void swap(double *one, double *other)
{
    double kept = *one;
    *one = *other;
    *other = kept;
}

static int factors(void)
{
    int swaps = 0;
    for (int k = 0; k < N; k++) {
        int pivot = k;
        for (int i = k + 1; i < N; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k]))
                pivot = i;
        if (a[pivot][k] == 0)
            return -1;
        if (pivot != k) {
            swaps++;
            for (int j = 0; j < N; j++)
                swap(&a[k][j], &a[pivot][j]);
        }
        for (int i = k + 1; i < N; i++) {
            double factor = a[i][k] /= a[k][k];
            for (int j = k + 1; j < N; j++)
                a[i][j] -= factor * a[k][j];
        }
    }
    return swaps;
}

static void transform(void)
{
    for (int i = 1, j = 0; i < POINTS; i++) {
        int bit = POINTS >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            swap(&re[i], &re[j]);
            swap(&im[i], &im[j]);
        }
    }
    for (int length = 2; length <= POINTS; length <<= 1)
        for (int i = 0; i < POINTS; i += length)
            for (int k = 0; k < length / 2; k++) {
                double wr = cos(2 * M_PI / length * k), wi = sin(2 * M_PI / length * k);
                int u = i + k, v = u + length / 2;
                double xr = re[v] * wr - im[v] * wi, xi = re[v] * wi + im[v] * wr;
                re[v] = re[u] - xr;
                im[v] = im[u] - xi;
                re[u] += xr;
                im[u] += xi;
            }
}

static int collatz(long n)
{
    int steps = 0;
    for (; n != 1; steps++)
        n = n & 1 ? 3 * n + 1 : n / 2;
    return steps;
}

int main(int count, char **arguments)
{
    double sum = 0;
    for (int round = count > 1 ? atoi(arguments[1]) : 1; round > 0; round--) {
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++)
                a[i][j] = rand() / (double)RAND_MAX;
        sum += factors();
        for (int i = 0; i < POINTS; i++) {
            re[i] = rand() % 100;
            im[i] = 0;
        }
        transform();
        sum += re[7];
        for (int i = 1; i < 20000; i++)
            sum += collatz(i);
    }
    printf("%g\n", sum);
}
