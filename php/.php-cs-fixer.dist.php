<?php

/**
 * The coding style of the PHP code, beyond PSR-12: `php-cs-fixer check --config php/.php-cs-fixer.dist.php` here, and
 * `fix` in place of `check`. `make compat` checks it.
 *
 * The WordPress plugin has the style of the rest, not that of WordPress: it shares the core and its authors with the
 * other packages. Some files are not strict about types: they run within an application that may not fail by
 * them. Two compare objects by their values.
 */

declare(strict_types=1);

$loose = new class () implements PhpCsFixer\Config\RuleCustomisationPolicyInterface {
    private const FILES = '~/php/(?:capture/|client/src/Capture/(?:report|session-rules)\.php$|wordpress/tests/site/)~';
    private const COMPARED_BY_VALUE = '~/(?:CachePools|DirectPostWrites)\.php$~';

    public function getPolicyVersionForCache(): string
    {
        return self::FILES . self::COMPARED_BY_VALUE;
    }

    public function getRuleCustomisers(): array
    {
        return [
            'declare_strict_types' => static fn (\SplFileInfo $file): bool => preg_match(self::FILES, $file->getPathname()) !== 1,
            'strict_comparison' => static fn (\SplFileInfo $file): bool => preg_match(self::COMPARED_BY_VALUE, $file->getPathname()) !== 1,
        ];
    }
};

return (new PhpCsFixer\Config())
    ->setRuleCustomisationPolicy($loose)
    ->setRiskyAllowed(true)
    ->setUnsupportedPhpVersionAllowed(true)
    ->setUsingCache(false)
    ->setFinder((new PhpCsFixer\Finder())->in([__DIR__, __DIR__ . '/../examples'])->exclude(['vendor']))
    ->setRules([
        '@PSR12' => true,
        '@PHP8x1Migration' => true,
        'array_syntax' => ['syntax' => 'short'],
        'binary_operator_spaces' => true,
        'cast_spaces' => true,
        'concat_space' => ['spacing' => 'one'],
        'declare_strict_types' => true,
        'fully_qualified_strict_types' => false,
        'get_class_to_class_keyword' => true,
        'is_null' => true,
        'lambda_not_used_import' => true,
        'logical_operators' => true,
        'modernize_types_casting' => true,
        'native_function_casing' => true,
        'no_alias_functions' => true,
        'no_empty_comment' => true,
        'no_empty_phpdoc' => true,
        'no_extra_blank_lines' => true,
        'no_superfluous_phpdoc_tags' => ['allow_mixed' => true],
        'no_trailing_comma_in_singleline' => true,
        'no_unneeded_control_parentheses' => true,
        'no_unset_cast' => true,
        'no_unused_imports' => true,
        'no_useless_else' => true,
        'no_useless_return' => true,
        'no_whitespace_before_comma_in_array' => true,
        'nullable_type_declaration_for_default_null_value' => true,
        'octal_notation' => false,
        'ordered_imports' => ['imports_order' => ['class', 'function', 'const']],
        'phpdoc_indent' => true,
        'phpdoc_scalar' => true,
        'phpdoc_trim' => true,
        'phpdoc_types' => true,
        'self_accessor' => true,
        'single_quote' => true,
        'standardize_not_equals' => true,
        'static_lambda' => true,
        'strict_comparison' => true,
        'strict_param' => true,
        'ternary_to_null_coalescing' => true,
        'type_declaration_spaces' => true,
        'void_return' => true,
        'whitespace_after_comma_in_array' => true,
    ]);
