<?php

/**
 * pagewell:invalidate, for Laravel's artisan and for Symfony's console.
 *
 *     pagewell:invalidate news 4 7              pages that depend on news 4 or 7, and lists of news
 *     pagewell:invalidate news                  every page with news
 *     pagewell:invalidate --tag=node:4          pages with this tag
 *     pagewell:invalidate --url=/about/         this URL
 *     pagewell:invalidate --all                 every page of the site
 *
 * One call of the control interface, at once. Exit status: 0 purged · 1 Pagewell has not confirmed
 * it · 2 wrong usage.
 */

declare(strict_types=1);

namespace Pagewell\Bridge\Console;

use Pagewell\Core\Changes;
use Pagewell\Core\Exception\InvalidationRefused;
use Pagewell\Core\Exception\InvalidConfiguration;
use Pagewell\Core\Exception\InvalidTag;
use Pagewell\Core\Exception\PagewellException;
use Pagewell\PageCache;
use Pagewell\RequestPageCache;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\OutputInterface;

/** Purges pages by hand. */
final class InvalidateCommand extends Command
{
    public const NAME = 'pagewell:invalidate';

    public function __construct(private readonly PageCache $pages = new RequestPageCache())
    {
        parent::__construct(self::NAME);
    }

    protected function configure(): void
    {
        $this->setDescription('Purge cached pages by their data, tag or URL')
            ->addArgument('kind', InputArgument::OPTIONAL, 'The kind of data that changed, as in changed(): news')
            ->addArgument('ids', InputArgument::IS_ARRAY, 'Its ids; none: unknown which')
            ->addOption('tag', null, InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Purge the pages with this tag')
            ->addOption('url', null, InputOption::VALUE_REQUIRED | InputOption::VALUE_IS_ARRAY, 'Purge this path or URL')
            ->addOption('all', null, InputOption::VALUE_NONE, 'Purge every page of the site')
            ->addOption('soft', null, InputOption::VALUE_NONE, 'Mark pages as stale instead of purging them');
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        try {
            $tags = [...self::tagsOf($input->getArgument('kind'), $input->getArgument('ids')), ...$input->getOption('tag')];
            $all = (bool) $input->getOption('all');
            if ($tags === [] && $input->getOption('url') === [] && !$all) {
                $output->writeln('Nothing is named to purge: write a kind and ids (news 4), --tag, --url or --all.');
                return self::INVALID;
            }
            $pages = $this->pages->invalidate($input->getOption('url'), $tags, $all, (bool) $input->getOption('soft'));
        } catch (InvalidTag $fault) {
            $output->writeln($fault->getMessage(), OutputInterface::OUTPUT_RAW);
            return self::INVALID;
        } catch (PagewellException $failure) {
            $output->writeln("{$failure->getMessage()}" . ($failure instanceof InvalidationRefused || $failure instanceof InvalidConfiguration ? ' No page was purged.' : ' It is unknown whether pages were purged: run the command again.'), OutputInterface::OUTPUT_RAW);
            return self::FAILURE;
        }
        $output->writeln($pages === 1 ? '1 page purged.' : "$pages pages purged.");
        return self::SUCCESS;
    }

    /**
     * @param list<string> $ids
     *
     * @return list<string>
     *
     * @throws InvalidTag a name is empty or too long
     */
    private static function tagsOf(?string $kind, array $ids): array
    {
        if (str_contains((string) $kind, ':')) {
            throw new InvalidTag('A kind has no colon. Write the kind and its ids (' . strtr((string) $kind, ':', ' ') . "), or --tag=$kind for a tag as it stands.");
        }
        $changes = Changes::byControl();
        foreach ($kind === null ? [] : ($ids === [] ? [null] : $ids) as $id) {
            $changes->changed($kind, $id);
        }
        return $changes->tags();
    }
}
