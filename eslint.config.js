import tseslint from 'typescript-eslint';

// The compiler already checks what it can; ESLint is here for what types alone do not show:
// a promise nobody waits for, and values that slip through as `any`.
export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'eslint.config.js'] },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { project: ['./tsconfig.json', './tsconfig.page.json'] } },
    rules: {
      // node:test's test() returns a promise that the runner itself awaits.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', name: ['test', 'describe', 'it'], package: 'node:test' },
          ],
        },
      ],
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/restrict-template-expressions': 'off',
    },
  },
);
