<?php

/**
 * pagewell:explain, for Laravel's artisan and for Symfony's console.
 *
 *     pagewell:explain /news/4
 *     pagewell:explain https://example.org/news/4 --cookie=theme=dark
 *
 * Prints how Pagewell answers the next request to a page, and why. Exit status: 0 explained · 1
 * Pagewell has not answered.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\Console;

use Pagewell\Configuration;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\Core\ExplanationClient;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** Explains how a page is answered. */
final class ExplainCommand extends Command
{
    public const NAME = 'pagewell:explain';

    /** @param ExplanationClient|null $client null: as configured */
    public function __construct(private readonly ?ExplanationClient $client = null)
    {
        parent::__construct(self::NAME);
    }

    protected function configure(): void
    {
        $this->setDescription('Explain whether a page is cached, on what it depends, and why it is not')
            ->addArgument('url', InputArgument::REQUIRED, 'A path with its query, or a whole URL')
            ->addOption('cookie', null, InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'A cookie of the request: NAME=VALUE');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        $client = $this->client ?? Configuration::client(null);
        if (!$client instanceof ExplanationClient) {
            $output->writeln($client === null ? 'The control interface is switched off (PAGEWELL_ADMIN=off).' : 'The configured client cannot explain pages: it is no ExplanationClient.');
            return self::FAILURE;
        }
        $cookies = implode('; ', $input->getOption('cookie'));
        try {
            $lines = $client->explain((string) $input->getArgument('url'), $cookies === '' ? [] : ['cookie' => $cookies])->lines();
        } catch (PagewellException $failure) {
            $lines = [$failure->getMessage()];
        }
        // Tags and sentences are text, not markup of the console.
        $output->writeln($lines, OutputInterface::OUTPUT_RAW);
        return isset($failure) ? self::FAILURE : self::SUCCESS;
    }
}
